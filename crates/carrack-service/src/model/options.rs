//! The table of a task's options: what each is called, what it does and which values it takes. Whoever shows a form for
//! tasks draws it from this table. Fields of [`TaskOptions`](super::TaskOptions) and [`NewTask`](super::NewTask) that
//! are no options stand in [`LEFT_OUT`], each with its reason.

use carrack_core::limits::{BLOCK_BYTES_MAX, BLOCK_BYTES_MIN, STREAMS};
use carrack_core::request::{Durability, Encrypt, Existing, Verify};
use carrack_core::words::Word;
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
    (OptionPlace::Task, "timer", "set by the service"),
    (OptionPlace::Task, "token", "set by the service"),
    (OptionPlace::Task, "ceilings", "set by the service"),
];

/// The table.
pub fn task_options() -> TaskOptionTable {
    let group = |title: &str, options: Vec<TaskOption>| OptionGroup { title: title.to_owned(), options };
    TaskOptionTable {
        groups: vec![
            group("Task", task()),
            group("What is copied", what()),
            group("How it is copied", how()),
            group("Faults", faults()),
        ],
    }
}

fn task() -> Vec<TaskOption> {
    vec![
        option("label", "Label", "What you call the task.", OptionKind::Text).of_task().at_most(256),
        option("priority", "Priority", "Of your own tasks, those with a higher number go first.", OptionKind::Number)
            .of_task()
            .between(0, 9)
            .by_default(OptionDefault::Number(4)),
        option("deadline", "Deadline", "The task fails if it has not ended by then.", OptionKind::Moment).of_task(),
    ]
}

fn what() -> Vec<TaskOption> {
    let digest = "Digests to compute, separated by commas: blake3, or in its place xxh128 (cheaper; finds accidents, \
                  not forgery; no digest of whole files), and adler32, crc32c. none computes nothing and needs a copy \
                  that verifies nothing.";
    vec![
        choice::<Existing>("existing", "Files that exist", "What happens to files that exist at the destination.")
            .word(Existing::Replace)
            .copying(),
        choice::<Verify>("verify", "Verify", "How each file is proved before its name appears.")
            .word(Verify::Wire)
            .copying(),
        option("digest", "Digests", digest, OptionKind::Text)
            .at_most(64)
            .by_default(OptionDefault::Text("blake3".into()))
            .copying(),
    ]
}

fn how() -> Vec<TaskOption> {
    let streams = "Data connections of each transfer. Left out, the number is tuned while the copy runs.";
    let polite = "Use fewer data connections where others use the path: each must raise the rate by 5 %, not by 1 %.";
    let block = "Unit of sending and repair: a power of two. Left out, 256 KiB for files up to 1 GiB, 1 MiB up to \
                 256 GiB, else 4 MiB.";
    let congestion = "Congestion control of the sending host's TCP, like cubic or bbr. Left out, that host's own.";
    vec![
        option("rate_limit", "Rate limit", "Limit in bytes a second.", OptionKind::Bytes).at_least(1).copying(),
        option("streams", "Data connections", streams, OptionKind::Number).between(1, STREAMS.into()).copying(),
        option("polite", "Polite", polite, OptionKind::Flag).by_default(OptionDefault::Flag(false)).copying(),
        option("block_bytes", "Block size", block, OptionKind::Bytes)
            .between(BLOCK_BYTES_MIN.into(), BLOCK_BYTES_MAX.into())
            .copying(),
        option("congestion", "Congestion control", congestion, OptionKind::Text).at_most(15).copying(),
        choice::<Encrypt>("encrypt", "Encryption", "Whether data connections keep secrets.")
            .word(Encrypt::Tls)
            .copying(),
        choice::<Durability>("durable", "Durability", "What reaches stable storage before it counts as there.")
            .word(Durability::Group)
            .copying(),
    ]
}

fn faults() -> Vec<TaskOption> {
    let flag = |name, label, help| option(name, label, help, OptionKind::Flag).by_default(OptionDefault::Flag(false));
    let growing = "Accept sources that grow: copy what they had when they were listed.";
    let skip = "Skip sources that are missing or may not be read; the task can still succeed.";
    vec![
        flag("allow_growing", "Growing files", growing).copying(),
        flag("skip_source_errors", "Skip unreadable sources", skip).of_task().copying(),
        flag("fail_on_quota_errors", "End at a full quota", "End at the first item that a quota refuses.")
            .of_task()
            .copying(),
    ]
}

fn option(name: &str, label: &str, help: &str, kind: OptionKind) -> TaskOption {
    TaskOption {
        name: name.to_owned(),
        at: OptionPlace::Options,
        label: label.to_owned(),
        help: help.to_owned(),
        kind,
        choices: Vec::new(),
        minimum: None,
        maximum: None,
        default: None,
        kinds: Vec::new(),
    }
}

/// The words and their meanings are those of the command line's help.
fn choice<W: Word>(name: &str, label: &str, help: &str) -> TaskOption {
    let word = |word: &W| OptionChoice { value: word.name().to_owned(), meaning: word.meaning().to_owned() };
    TaskOption { choices: W::ALL.iter().map(word).collect(), ..option(name, label, help, OptionKind::Choice) }
}

impl TaskOption {
    fn of_task(self) -> Self {
        Self { at: OptionPlace::Task, ..self }
    }

    fn copying(self) -> Self {
        Self { kinds: vec![TaskKind::Copy, TaskKind::Move], ..self }
    }

    fn at_least(self, minimum: u64) -> Self {
        Self { minimum: Some(minimum), ..self }
    }

    fn at_most(self, maximum: u64) -> Self {
        Self { maximum: Some(maximum), ..self }
    }

    fn between(self, minimum: u64, maximum: u64) -> Self {
        self.at_least(minimum).at_most(maximum)
    }

    fn by_default(self, default: OptionDefault) -> Self {
        Self { default: Some(default), ..self }
    }

    fn word(self, word: impl Word) -> Self {
        self.by_default(OptionDefault::Text(word.name().to_owned()))
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
                OptionKind::Text => (vec![text(1), text(option.maximum.unwrap())], vec![json!(1)]),
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
