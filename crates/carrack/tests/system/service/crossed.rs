//! Every option of a task by every way in: command line, batch file, API, and `carrack copy` where it has the option.
//! The cases are made of the table of options that the service serves, so a new option joins by itself. Each way in
//! gives the same answer: the same sentence where the value is refused; the same task, and the same files, where it is
//! taken.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, SystemTime};

use carrack_service::client::{Call, Client, ClientError, Target};
use carrack_service::model::{OptionChoice, OptionKind, OptionPlace, TaskKind, TaskOption, TaskOptionTable};
use serde_json::{Value, json};

use crate::support::Sandbox;
use crate::support::service::Service;

/// One value of one option.
struct Case {
    option: TaskOption,
    /// In a document.
    value: Value,
    /// At the command line; none: it cannot be typed there.
    typed: Option<Vec<String>>,
    /// Whether it has to be taken; none: all ways in have to agree.
    good: Option<bool>,
}

/// Texts that mean nothing to most options.
fn odd_texts() -> Vec<String> {
    let odd =
        ["", " ", " 4", "4 ", "none ", "NONE", "no such word", "\u{ff14}", "\u{202e}x", "x\ny", "'", "%s", "-1", "+4"];
    odd.iter().map(ToString::to_string).chain(["x".repeat(100_000)]).collect()
}

impl Case {
    /// A text, typed as the value of the option's flag.
    fn text(option: &TaskOption, text: &str, good: Option<bool>) -> Self {
        let typed = option.flag.as_ref().map(|flag| vec![format!("--{flag}={text}")]);
        Self { option: option.clone(), value: text.into(), typed, good }
    }

    fn number(option: &TaskOption, number: u64, good: Option<bool>) -> Self {
        // A rate of a bare number is not taken at the command line.
        let unit = if option.name == "rate_limit" { "B" } else { "" };
        Self { value: number.into(), ..Self::text(option, &format!("{number}{unit}"), good) }
    }

    /// A value that only a document can have.
    fn document(option: &TaskOption, value: Value) -> Self {
        Self { option: option.clone(), value, typed: None, good: Some(false) }
    }

    /// Typed with a flag for each line.
    fn line_by_line(self) -> Self {
        let (text, flag) = (self.value.as_str().unwrap(), self.option.flag.as_ref().unwrap());
        let typed = text.lines().map(|line| format!("--{flag}={line}")).collect();
        Self { typed: Some(typed), ..self }
    }

    /// A word, and what is none although it looks like it.
    fn of_choice(option: &TaskOption, choice: &OptionChoice) -> [Self; 3] {
        let case = Self::text(option, &choice.value, Some(true));
        // A word without a flag of its own is the default.
        let own = choice.flag.iter().map(|flag| format!("--{flag}")).collect();
        let case = if option.flag.is_none() { Self { typed: Some(own), ..case } } else { case };
        let upper = Self::text(option, &choice.value.to_uppercase(), Some(false));
        let two = format!("{},{}", choice.value, option.choices[0].value);
        [case, upper, Self::text(option, &two, Some(false))]
    }

    /// All cases of an option.
    fn of(option: &TaskOption) -> Vec<Self> {
        let odd = |good: Option<bool>| odd_texts().into_iter().map(move |text| Self::text(option, &text, good));
        let typed = |words: &[&str]| Some(words.iter().map(ToString::to_string).collect());
        let mut cases: Vec<Self> = option
            .examples
            .iter()
            .map(|text| match option.kind {
                OptionKind::Number | OptionKind::Bytes => Self::number(option, text.parse().unwrap(), Some(true)),
                _ => Self::text(option, text, Some(true)),
            })
            .collect();
        let mut wrong_types = vec![json!([]), json!({}), json!([true])];
        match option.kind {
            OptionKind::Flag => {
                let flag = option.flag.clone().unwrap();
                let with =
                    |value: bool, typed| Self { option: option.clone(), value: value.into(), typed, good: Some(true) };
                cases.extend([with(true, typed(&[&format!("--{flag}")])), with(false, typed(&[]))]);
                wrong_types.extend([json!("true"), json!("yes"), json!(1), json!("")]);
            }
            OptionKind::Choice => {
                cases.extend(option.choices.iter().flat_map(|choice| Self::of_choice(option, choice)));
                cases.extend(odd(Some(false)));
                wrong_types.extend([json!(true), json!(0)]);
            }
            OptionKind::Number | OptionKind::Bytes => {
                cases.extend(odd(Some(false)));
                cases.extend(option.minimum.map(|least| Self::number(option, least, Some(true))));
                cases.extend(option.maximum.map(|most| Self::number(option, most, Some(true))));
                let below = option.minimum.and_then(|least| least.checked_sub(1));
                let above = option.maximum.and_then(|most| most.checked_add(1));
                cases.extend(
                    [below, above].into_iter().flatten().map(|number| Self::number(option, number, Some(false))),
                );
                cases.push(Self::number(option, u64::MAX, None));
                cases.push(Self { value: json!(1.5), ..Self::text(option, "1.5", Some(false)) });
                cases.push(Self { value: json!(-4), ..Self::text(option, "-4", Some(false)) });
                wrong_types.extend([json!(true), json!("3")]);
            }
            OptionKind::Text => {
                cases.extend(odd(None));
                let most = usize::try_from(option.maximum.unwrap()).unwrap();
                cases.push(Self::text(option, &"x".repeat(most), None));
                cases.push(Self::text(option, &"x".repeat(most + 1), Some(false)));
                for pair in option.examples.windows(2) {
                    cases.push(Self::text(option, &pair.join(","), None));
                }
                wrong_types.extend([json!(true), json!(7)]);
            }
            OptionKind::Lines => {
                cases = cases.into_iter().map(Self::line_by_line).collect();
                let odd = odd_texts().into_iter().filter(|text| !text.trim().is_empty() && !text.contains('\n'));
                // What is no rule may be the name of a directory.
                let is_rules = option.name == "filters";
                let good = if is_rules { Some(false) } else { None };
                cases.extend(odd.map(|text| Self::text(option, &text, good)));
                wrong_types.extend([json!(true), json!(7), json!("")]);
                let no_rules = [json!("- a\nno rule"), json!("# no rule")];
                wrong_types.extend(no_rules.into_iter().filter(|_| is_rules));
            }
            OptionKind::Moment => {
                cases.push(Self::text(option, "2199-01-02T03:04:05Z", Some(true)));
                cases.push(Self::text(option, "2001-01-02T03:04:05Z", Some(false)));
                cases.extend(odd(Some(false)));
                wrong_types.extend([json!(true), json!(7)]);
            }
            OptionKind::Duration => unreachable!("no option is one: {option:?}"),
        }
        cases.extend(wrong_types.into_iter().map(|value| Self::document(option, value)));
        cases
    }

    /// The task that has it, and nothing else.
    fn task(&self, source: &str, destination: &str) -> Value {
        let mut task =
            json!({ "kind": "copy", "pairs": [{ "source": source, "destination": destination }], "options": {} });
        let fields = if self.option.at == OptionPlace::Task { &mut task } else { &mut task["options"] };
        fields[&self.option.name] = self.value.clone();
        task
    }
}

impl std::fmt::Display for Case {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let shown: String = self.value.to_string().chars().take(80).collect();
        write!(f, "{}: {shown}", self.option.name)
    }
}

/// A service whose only worker is busy, so that tasks stay as they were submitted.
struct Scene {
    sandbox: Sandbox,
    client: Client,
    _service: Service,
}

/// What a way in answers: the task that it makes, or why not.
type Answer = Result<Value, String>;

impl Scene {
    fn new(more: &[&str]) -> Self {
        let sandbox = Sandbox::new();
        let service = Service::start(&sandbox, more);
        let socket = sandbox.path("home/.local/state/carrack/service/service.sock");
        let client = Client::new(Target::Socket(socket), None).unwrap();
        sandbox.write("from/a", "a");
        fs::create_dir(sandbox.path("to")).unwrap();
        Self { sandbox, client, _service: service }
    }

    fn table(&self) -> Vec<TaskOption> {
        let table: TaskOptionTable = self.client.get("/options/task").unwrap();
        table.groups.into_iter().flat_map(|group| group.options).collect()
    }

    fn at(&self, name: &str) -> String {
        self.sandbox.path(name).to_str().unwrap().to_owned()
    }

    /// A task as the API makes it.
    fn post(&self, task: &Value) -> Answer {
        match self.client.call(&Call::post("/tasks").body(task).unwrap()) {
            Ok(answer) => Ok(answer.json::<Value>().unwrap()),
            Err(ClientError::Problem(problem)) => {
                assert_eq!(problem.status, 400, "{problem:?}");
                Err(problem.detail)
            }
            Err(other) => panic!("{other}"),
        }
    }

    /// Runs the program. An answer of success is what it prints.
    fn run(&self, words: &[&str], typed: &[String]) -> Result<String, String> {
        let words = words.iter().map(ToString::to_string).chain(typed.iter().cloned());
        let ran = self.sandbox.run(words.collect::<Vec<_>>());
        match ran.code {
            0 => Ok(ran.stdout.trim().to_owned()),
            2 => Err(ran.stderr),
            // Taken, and obeyed: no file system is mounted there.
            11 if typed == ["--require-mount"] => Ok(String::new()),
            other => panic!("{typed:?} ended with {other}: {}", ran.stderr),
        }
    }

    fn submitted(&self, id: &str) -> Value {
        self.client.get(&format!("/tasks/{id}")).unwrap()
    }

    fn submit(&self, typed: &[String]) -> Answer {
        let (from, to) = (self.at("from/"), self.at("to/"));
        self.run(&["task", "submit", &from, &to], typed).map(|id| self.submitted(&id))
    }

    fn batch(&self, typed: &[String]) -> Answer {
        self.sandbox.write("batch", format!("{} {}\n", self.at("from/"), self.at("to/")));
        self.run(&["task", "submit", "--batch", "batch"], typed).map(|id| self.submitted(&id))
    }

    /// Whether `copy` or `sync` takes it.
    fn copy(&self, verb: &str, typed: &[String]) -> Result<(), String> {
        self.run(&[verb, "--dry-run", "from/", "to/"], typed).map(drop)
    }

    /// Tries a case by every way in; what they disagree on.
    fn cross(&self, case: &Case) -> Vec<String> {
        let mut wrong = Vec::new();
        let api = self.post(&case.task(&self.at("from/"), &self.at("to/")));
        if case.good.is_some_and(|good| good != api.is_ok()) {
            wrong.push(format!("{case}: the API answers {}", shown(&api)));
        }
        let Some(typed) = &case.typed else { return wrong };
        for (way, answer) in [("task submit", self.submit(typed)), ("a batch", self.batch(typed))] {
            if !is_same(&api, &answer) {
                wrong.push(format!("{case}: {way} answers {}, the API {}", shown(&answer), shown(&api)));
            }
        }
        if case.option.at == OptionPlace::Options {
            // No plain copy deletes anything.
            let copied = self.copy(if case.option.kinds == [TaskKind::Copy] { "sync" } else { "copy" }, typed);
            let same = match (&copied, &api) {
                (Ok(()), Ok(_)) => true,
                (Err(said), Err(told)) => said.contains(sentence(told)),
                _ => false,
            };
            if !same {
                wrong.push(format!("{case}: copy answers {copied:?}, the API {}", shown(&api)));
            }
        }
        wrong
    }
}

/// What the API says is wrong, without the field that it names.
fn sentence(detail: &str) -> &str {
    detail.split_once(": ").map_or(detail, |(_, sentence)| sentence)
}

fn shown(answer: &Answer) -> String {
    match answer {
        Ok(task) => task["request"].to_string(),
        Err(why) => why.clone(),
    }
}

fn is_same(api: &Answer, other: &Answer) -> bool {
    match (api, other) {
        // A flag that is off, and the word that is the default, may be left out.
        (Ok(api), Ok(other)) => without_defaults(&api["request"]) == without_defaults(&other["request"]),
        (Err(told), Err(said)) => said.contains(sentence(told)),
        _ => false,
    }
}

/// A request without the words that mean the same as nothing.
fn without_defaults(request: &Value) -> Value {
    let mut request = request.clone();
    for (option, word) in [("existing", "replace"), ("links", "keep"), ("xattrs", "none")] {
        if request["options"][option] == word {
            request["options"].as_object_mut().unwrap().remove(option);
        }
    }
    request
}

/// How many cases of each option are tried: `CARRACK_CROSSED=all` for each. Without it, those that have to be taken,
/// and every third of the others.
fn is_whole() -> bool {
    std::env::var("CARRACK_CROSSED").is_ok_and(|value| value == "all")
}

#[test]
fn options_have_the_same_answer_from_command_line_batch_and_api() {
    let scene = Scene::new(&["--workers=1"]);
    scene.sandbox.ok(["task", "submit", "random:1T", "null:", "--bwlimit=1MB", "--priority=9"]);
    let table = scene.table();
    assert!(table.len() >= 15, "{}", table.len());
    let cases: Vec<Case> = table
        .iter()
        .flat_map(Case::of)
        .enumerate()
        .filter(|(index, case)| is_whole() || case.good == Some(true) || case.typed.is_none() || index % 3 == 0)
        .map(|(_, case)| case)
        .collect();
    let mut wrong: Vec<String> = cases.iter().flat_map(|case| scene.cross(case)).collect();
    // Two that exclude each other.
    let flags_of = |option: &TaskOption| option.choices.iter().filter_map(|choice| choice.flag.clone()).collect();
    let flags: Vec<Vec<String>> = table.iter().map(flags_of).collect();
    assert!(flags.iter().filter(|flags| flags.len() > 1).count() > 1, "{flags:?}");
    for pair in flags.iter().flat_map(|flags| flags.windows(2)) {
        let typed: Vec<String> = pair.iter().map(|flag| format!("--{flag}")).collect();
        for (way, answer) in [("task submit", scene.submit(&typed).map(drop)), ("copy", scene.copy("copy", &typed))] {
            if answer.is_ok() {
                wrong.push(format!("{typed:?} is taken by {way}"));
            }
        }
    }
    let twice =
        r#"{"pairs": [{"source": "/a", "destination": "/b"}], "options": {"existing": "keep", "existing": "only"}}"#;
    let call = Call::post("/tasks").bytes(twice.into()).header("content-type", "application/json");
    if scene.client.call(&call).is_ok() {
        wrong.push("an option stands twice in a document, and it is taken".to_owned());
    }
    let crowd = [
        (json!({ "digest": "none" }), vec!["--digest=none"]),
        (json!({ "digest": "none", "verify": "source" }), vec!["--digest=none", "--verify=source"]),
        (json!({ "digest": "none", "verify": "none" }), vec!["--digest=none", "--verify=none"]),
        (json!({ "verify": "none", "encrypt": "none" }), vec!["--verify=none", "--encrypt=none"]),
    ];
    for (options, typed) in crowd {
        let typed: Vec<String> = typed.into_iter().map(str::to_owned).collect();
        let pair = json!({ "source": scene.at("from/"), "destination": scene.at("to/") });
        for kind in ["copy", "move"] {
            let api = scene.post(&json!({ "kind": kind, "pairs": [pair], "options": options }));
            let kind = [format!("--kind={kind}")];
            let answer = scene.submit(&[&typed[..], &kind[..]].concat());
            if !is_same(&api, &answer) {
                wrong.push(format!(
                    "{typed:?} {kind:?}: task submit answers {}, the API {}",
                    shown(&answer),
                    shown(&api)
                ));
            }
        }
    }
    eprintln!("{} cases of {} options", cases.len(), table.len());
    assert!(wrong.is_empty(), "{} answers differ:\n{}", wrong.len(), wrong.join("\n"));
}

/// Files that each option about names treats differently.
fn lay_out(sandbox: &Sandbox, name: &str) -> String {
    let at = |seconds: u64| SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000 + seconds);
    let write = |path: String, content: &str, seconds| {
        let path = sandbox.write(path, content);
        fs::File::options().write(true).open(path).unwrap().set_modified(at(seconds)).unwrap();
    };
    for (file, of_source, there) in
        [("same", 50, Some(50)), ("stale", 50, Some(10)), ("ahead", 50, Some(90)), ("absent", 50, None)]
    {
        write(format!("{name}/from/{file}"), &format!("{file} of the source"), of_source);
        if let Some(seconds) = there {
            write(format!("{name}/to/{file}"), "old", seconds);
        }
    }
    name.to_owned()
}

/// What is below a directory: contents by name.
fn contents(directory: &Path) -> BTreeMap<String, String> {
    let entries = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap());
    entries.map(|entry| (entry.file_name().into_string().unwrap(), fs::read_to_string(entry.path()).unwrap())).collect()
}

#[test]
fn options_have_the_same_effect_by_command_line_api_and_copy() {
    let scene = Scene::new(&[]);
    let numbers = AtomicUsize::new(0);
    let mut seen = Vec::new();
    for option in scene.table().iter().filter(|option| option.at == OptionPlace::Options) {
        let cheap = ["existing", "verify", "digest"].contains(&option.name.as_str());
        // A bound of the rate makes a copy last; no other value does.
        let slow = |case: &Case| {
            option.name == "rate_limit" && case.value.as_u64().is_some_and(|rate| rate < 1000 && rate > 0)
        };
        for case in
            Case::of(option).iter().filter(|case| case.good == Some(true) && (cheap || is_whole()) && !slow(case))
        {
            let Some(typed) = &case.typed else { continue };
            if case.value == "none" && option.name == "digest" {
                continue; // It needs another option.
            }
            let fresh = || lay_out(&scene.sandbox, &format!("tree{}", numbers.fetch_add(1, Ordering::Relaxed)));
            let place = fresh();
            let (from, to) = (scene.at(&format!("{place}/from/")), scene.at(&format!("{place}/to/")));
            let id = scene.post(&case.task(&from, &to)).unwrap()["id"].as_str().unwrap().to_owned();
            scene.sandbox.ok(["task", "wait", &id, "--timeout=120s"]);
            let by_api = (contents(Path::new(&to)), items(&scene, &id));
            let place = fresh();
            let (from, to) = (scene.at(&format!("{place}/from/")), scene.at(&format!("{place}/to/")));
            let id = scene.run(&["task", "submit", "--wait", "--timeout=120s", &from, &to], typed).unwrap();
            let by_command = (contents(Path::new(&to)), items(&scene, &id));
            assert_eq!(by_api, by_command, "{case}");
            let place = fresh();
            let (from, to) = (format!("{place}/from/"), format!("{place}/to/"));
            let printed = scene.run(&["copy", "--json", &from, &to], typed).unwrap();
            assert_eq!(by_api, (contents(&scene.sandbox.path(&to)), copied_items(&printed)), "{case}");
            seen.push(by_api);
        }
    }
    // The cases do not all mean the same.
    let trees: std::collections::BTreeSet<_> = seen.iter().map(|(tree, _)| tree.clone()).collect();
    assert_eq!(trees.len(), 4, "{seen:?}");
    assert!(seen.iter().any(|(_, items)| items.values().all(|(_, digest)| digest.is_none())), "{seen:?}");
    assert!(seen.iter().any(|(_, items)| items.values().all(|(_, digest)| digest.is_some())), "{seen:?}");
}

/// Files of a task: done or not, and the digest, by name.
fn items(scene: &Scene, id: &str) -> BTreeMap<String, (bool, Option<String>)> {
    let listed: Value = scene.client.get(&format!("/tasks/{id}/items?limit=1000")).unwrap();
    let files = listed["items"].as_array().unwrap().iter().filter(|item| item["kind"] == "file");
    let told = |item: &Value| {
        let digest = item["digest"].as_str().map(str::to_owned);
        (item["path"].as_str().unwrap().to_owned(), (item["state"] == "done", digest))
    };
    files.map(told).collect()
}

/// The same of a copy, from its JSON.
fn copied_items(printed: &str) -> BTreeMap<String, (bool, Option<String>)> {
    let lines = printed.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let files = lines.filter(|line| line["type"] == "item" && line["kind"] == "file");
    let told = |item: Value| {
        let is_done = item["outcome"] == "published";
        let digest = item["blake3"].as_str().filter(|_| is_done).map(str::to_owned);
        (item["path"].as_str().unwrap().to_owned(), (is_done, digest))
    };
    files.map(told).collect()
}
