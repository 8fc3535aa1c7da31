//! The table of a task's options: what each is called, what it does and which values it takes. Whoever shows a form for
//! tasks draws it from this table. Fields of [`TaskOptions`](super::TaskOptions) and [`NewTask`](super::NewTask) that
//! are no options stand in [`LEFT_OUT`], each with its reason.

use carrack_core::options::{self, Choice, Definition, Flag, FormGroup, Takes};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{TaskKind, word_enum};

word_enum! {
    /// Which document has an option's field.
    pub enum OptionPlace {
        Options "options" "a field of TaskOptions"
        Task "task" "a field of NewTask"
    }
}

word_enum! {
    /// What values an option takes.
    pub enum OptionKind {
        Flag "flag" "true or false"
        Choice "choice" "one of a few words"
        Number "number" "a whole number"
        Text "text" "a line of text"
        Lines "lines" "lines of text"
        Bytes "bytes" "a number of bytes"
        Duration "duration" "a number of seconds"
        Moment "moment" "a time, as RFC 3339 has it"
    }
}

/// One word that an option takes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct OptionChoice {
    /// The word.
    pub value: String,
    /// What it means.
    pub meaning: String,
    /// The command line's flag for it, without dashes, where the word has a flag of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flag: Option<String>,
}

/// The value that an option has where it is left out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(untagged)]
pub enum OptionDefault {
    /// Of a flag.
    Flag(bool),
    /// Of a number.
    Number(u64),
    /// Of a choice.
    Text(String),
}

/// One option of a task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TaskOption {
    /// The name of its field.
    pub name: String,
    /// Which document has the field.
    pub at: OptionPlace,
    /// The command line's flag for it, without dashes; none: each of its words has a flag, or is the default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flag: Option<String>,
    /// What people call it.
    pub label: String,
    /// What it does.
    pub help: String,
    /// What values it takes.
    pub kind: OptionKind,
    /// The words that a choice takes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub choices: Vec<OptionChoice>,
    /// The least value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub minimum: Option<u64>,
    /// The greatest value; of a text, its characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub maximum: Option<u64>,
    /// Its value where it is left out; none: the service, the endpoint or the path decides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<OptionDefault>,
    /// Kinds of tasks that it means something for; empty: all of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kinds: Vec<TaskKind>,
    /// Values that it takes, where words or bounds do not tell them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub examples: Vec<String>,
}

/// Options that belong together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct OptionGroup {
    /// What people call them.
    pub title: String,
    /// The options, in the order of a form.
    pub options: Vec<TaskOption>,
}

/// All options of a task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TaskOptionTable {
    /// The groups, in the order of a form.
    pub groups: Vec<OptionGroup>,
}

/// Fields that are no options, with the reason.
pub const LEFT_OUT: &[(OptionPlace, &str, &str)] = &[
    (OptionPlace::Options, "only", "a list of paths: whoever selects items names them"),
    (OptionPlace::Task, "kind", "chosen before anything else"),
    (OptionPlace::Task, "pairs", "the sources and destinations themselves"),
    (OptionPlace::Task, "options", "the document that the other options are fields of"),
    (OptionPlace::Task, "expect_digests", "a list with a line for each file, from a file of digests"),
    (OptionPlace::Task, "notify", "a list for programs that follow the log; events tell every end"),
    (OptionPlace::Task, "preview", "whoever submits a task chooses whether it is one"),
    (OptionPlace::Task, "timer", "set by the service"),
    (OptionPlace::Task, "guard", "set by the service"),
    (OptionPlace::Task, "token", "set by the service"),
    (OptionPlace::Task, "ceilings", "set by the service"),
];

/// The table, from the definitions of the options.
pub fn task_options() -> TaskOptionTable {
    let of_copies = options::OF_A_COPY.iter().map(|definition| (definition, OptionPlace::Options));
    let of_tasks = options::OF_A_TASK.iter().map(|definition| (definition, OptionPlace::Task));
    let all: Vec<_> = of_copies.chain(of_tasks).collect();
    let group = |group: FormGroup| {
        let own = all.iter().filter(|(definition, _)| definition.group == group);
        let mut options: Vec<TaskOption> = own.map(|(definition, at)| TaskOption::of(definition, *at)).collect();
        if group == FormGroup::Task {
            options.push(deadline());
        }
        OptionGroup { title: group.title().to_owned(), options }
    };
    TaskOptionTable { groups: FormGroup::ALL.map(group).into() }
}

/// The only option that is a time: nothing but a task has it.
fn deadline() -> TaskOption {
    TaskOption {
        name: "deadline".to_owned(),
        at: OptionPlace::Task,
        flag: Some("deadline".to_owned()),
        label: "Deadline".to_owned(),
        help: "The task fails if it has not ended by then.".to_owned(),
        kind: OptionKind::Moment,
        choices: Vec::new(),
        minimum: None,
        maximum: None,
        default: None,
        kinds: Vec::new(),
        examples: Vec::new(),
    }
}

impl TaskOption {
    fn of(definition: &Definition, at: OptionPlace) -> Self {
        let (mut minimum, mut maximum, mut choices) = (None, None, Vec::new());
        let kind = match definition.kind {
            Takes::Switch => OptionKind::Flag,
            Takes::Words(words) => {
                choices = words().iter().map(|choice| OptionChoice::of(choice, definition)).collect();
                OptionKind::Choice
            }
            Takes::Number { min, max, .. } => {
                (minimum, maximum) = (Some(min), Some(max));
                OptionKind::Number
            }
            Takes::Bytes { min, max } => {
                (minimum, maximum) = (Some(min), Some(max).filter(|max| *max < u64::MAX));
                OptionKind::Bytes
            }
            Takes::Text { characters_max } => {
                maximum = Some(characters_max);
                OptionKind::Text
            }
            Takes::Lines { characters_max } => {
                maximum = Some(characters_max);
                OptionKind::Lines
            }
        };
        let default = definition.default.map(|text| match kind {
            OptionKind::Flag => OptionDefault::Flag(text == "true"),
            OptionKind::Number | OptionKind::Bytes => OptionDefault::Number(text.parse().unwrap_or_default()),
            _ => OptionDefault::Text(text.to_owned()),
        });
        Self {
            name: definition.name.to_owned(),
            at,
            flag: Some(definition.flag.name()).filter(|name| !name.is_empty()).map(str::to_owned),
            label: definition.title.to_owned(),
            help: definition.help.to_owned(),
            kind,
            choices,
            minimum,
            maximum,
            default,
            kinds: match definition.group {
                FormGroup::Task => Vec::new(),
                // A move keeps what is at its destination.
                FormGroup::Deletion => vec![TaskKind::Copy],
                _ if COMPARED.contains(&definition.name) => vec![TaskKind::Copy, TaskKind::Move, TaskKind::Check],
                FormGroup::What | FormGroup::How | FormGroup::Faults => vec![TaskKind::Copy, TaskKind::Move],
            },
            examples: definition.examples.iter().map(ToString::to_string).collect(),
        }
    }
}

/// Options that say what a check compares, which files it looks at, and what it leaves.
const COMPARED: &[&str] = &[
    "compare",
    "modify_window",
    "owner",
    "group",
    "special_bits",
    "acls",
    "xattrs",
    "trusted",
    "selinux",
    "hard_links",
    "numeric_ids",
    "filters",
    "min_size",
    "max_size",
    "min_age",
    "max_age",
    "one_file_system",
    "receipt",
];

impl OptionChoice {
    fn of(choice: &Choice, definition: &Definition) -> Self {
        let flag = match definition.flag {
            Flag::Switches(switches) => switches.iter().find(|flag| flag.word == choice.word).map(|flag| flag.name),
            Flag::Value { .. } | Flag::Several { .. } | Flag::Switch { .. } | Flag::Lines { .. } => None,
        };
        Self { value: choice.word.to_owned(), meaning: choice.meaning.to_owned(), flag: flag.map(str::to_owned) }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::{Value, json};
    use utoipa::PartialSchema;

    use super::*;
    use crate::identity::check_request;
    use crate::identity::{Caller, RequestFault};
    use crate::model::{KnownBy, NewTask, Role, TaskOptions};

    fn fields<T: PartialSchema>(place: OptionPlace) -> BTreeSet<(&'static str, String)> {
        let schema = serde_json::to_value(T::schema()).unwrap();
        schema["properties"].as_object().unwrap().keys().map(|name| (place.name(), name.clone())).collect()
    }

    fn all() -> Vec<TaskOption> {
        task_options().groups.into_iter().flat_map(|group| group.options).collect()
    }

    #[test]
    fn task_options_name_every_field_once_or_say_why_not() {
        let mut expected = fields::<TaskOptions>(OptionPlace::Options);
        expected.extend(fields::<NewTask>(OptionPlace::Task));
        let left_out = LEFT_OUT.iter().map(|(place, name, _)| (place.name(), (*name).to_owned()));
        let named: Vec<_> = all().into_iter().map(|option| (option.at.name(), option.name)).chain(left_out).collect();
        assert_eq!(named.len(), named.iter().collect::<BTreeSet<_>>().len(), "one is named twice");
        assert_eq!(named.into_iter().collect::<BTreeSet<_>>(), expected);
        assert!(LEFT_OUT.iter().all(|(_, _, reason)| !reason.is_empty()));
    }

    /// A task with one option set.
    fn with(option: &TaskOption, value: &Value) -> Result<Vec<String>, RequestFault> {
        let kind = option.kinds.first().copied().unwrap_or(TaskKind::Copy);
        let mut task = json!({ "kind": kind, "pairs": [{ "source": "/a", "destination": "/b" }], "options": {} });
        match option.at {
            OptionPlace::Task => task[&option.name] = value.clone(),
            OptionPlace::Options => task["options"][&option.name] = value.clone(),
        }
        let wrong = |error: serde_json::Error| RequestFault::Wrong(error.to_string());
        let task: NewTask = serde_json::from_value(task).map_err(wrong)?;
        let caller = Caller {
            user: "ann".into(),
            role: Role::Admin,
            scope: None,
            via: KnownBy::Socket,
            token: None,
            expires: None,
            runs_service: true,
        };
        check_request(&caller, &task, |_| Ok::<_, RequestFault>(None))
    }

    /// Every value that the table offers is taken, and none beyond its bounds.
    #[test]
    fn task_options_offer_what_a_task_takes() {
        for option in all() {
            let text = |length: u64| Value::from("x".repeat(usize::try_from(length).unwrap()));
            let (good, bad): (Vec<Value>, Vec<Value>) = match option.kind {
                OptionKind::Flag => (vec![true.into(), false.into()], vec!["yes".into()]),
                OptionKind::Choice => {
                    assert!(option.choices.len() > 1, "{option:?}");
                    (option.choices.iter().map(|one| one.value.clone().into()).collect(), vec!["nonsense".into()])
                }
                OptionKind::Number | OptionKind::Bytes => {
                    let below = option.minimum.and_then(|least| least.checked_sub(1));
                    let bounds = option.minimum.into_iter().chain(option.maximum);
                    let mut bad: Vec<Value> = below.into_iter().map(Value::from).collect();
                    bad.extend([json!(-1), json!("1")]);
                    (bounds.map(Value::from).collect(), bad)
                }
                OptionKind::Text | OptionKind::Lines => {
                    let good: Vec<Value> = option.examples.iter().cloned().map(Value::from).collect();
                    assert!(!good.is_empty(), "{option:?}");
                    (good, vec![json!(1), text(option.maximum.unwrap() + 1)])
                }
                OptionKind::Moment => (vec![json!("2030-01-01T00:00:00Z")], vec![json!("tomorrow")]),
                OptionKind::Duration => unreachable!("no option is one: {option:?}"),
            };
            let default = option.default.iter().map(|value| serde_json::to_value(value).unwrap());
            for value in good.into_iter().chain(default) {
                with(&option, &value).unwrap_or_else(|error| panic!("{}: {value}: {error}", option.name));
            }
            for value in bad {
                assert!(with(&option, &value).is_err(), "{}: {value} was taken", option.name);
            }
        }
    }

    #[test]
    fn task_options_are_described_in_words() {
        for option in all() {
            assert!(option.help.ends_with('.') && !option.help.contains("--"), "{option:?}");
            assert!(option.label.chars().next().is_some_and(char::is_uppercase), "{option:?}");
            assert!(option.choices.iter().all(|choice| !choice.meaning.is_empty()), "{option:?}");
        }
    }
}
