//! The reference pages say what the program says: docs/commands.md and docs/flags.md are made from the tree of verbs
//! that help and manual come from, the table of docs/configuration.md from the keys of `carrack.toml`.
//! `CARRACK_GOLDEN=write` writes them anew. The commands of all pages are commands that the program takes.

use std::path::PathBuf;

use clap::{Arg, Command};

use super::serve::{KEYS, check_values};
use super::whole_tree;
use crate::cli::config_file::{ConfigFile, ConfigKey, ValueKind};
use crate::cli::flags::Flags;
use crate::cli::foreign::{
    BBCP_FLAGS, FOREIGN_FLAGS, FOREIGN_TASK_FLAGS, ForeignEffect, ForeignFlag, GLOBUS_URL_COPY_FLAGS, LEAVE_IT_OUT,
};
use crate::cli::settings::Settings;
use crate::cli::words::split_words;

/// Verbs of managed transfers, in the order of the page.
const VERBS: [&str; 8] = ["serve", "task", "endpoint", "timer", "service", "login", "logout", "whoami"];

fn page(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(name)
}

/// Compares what stands between two marks of a page with what belongs there, or writes it.
#[track_caller]
fn compare(name: &str, what: &str, text: &str) {
    let (begin, end) = (format!("<!-- {what}: written by a test -->"), format!("<!-- end of the {what} -->"));
    let file = page(name);
    let page = std::fs::read_to_string(&file).expect("the page");
    let (before, rest) = page.split_once(&begin).expect("the page has a place for it");
    let (found, after) = rest.split_once(&end).expect("the place ends");
    if std::env::var("CARRACK_GOLDEN").is_ok_and(|word| word == "write") {
        std::fs::write(&file, format!("{before}{begin}\n\n{}\n\n{end}{after}", text.trim())).expect("written");
        return;
    }
    assert_eq!(found.trim(), text.trim(), "{name}: CARRACK_GOLDEN=write writes it");
}

/// Text for a cell of a table.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace(";\n", "; ").replace('\n', ". ")
}

fn is_shown(arg: &&Arg) -> bool {
    !arg.is_hide_set() && !matches!(arg.get_id().as_str(), "help" | "version")
}

fn flag(arg: &Arg) -> String {
    let name = arg.get_long().map_or_else(String::new, |long| format!("--{long}"));
    let letter = arg.get_short().map_or_else(String::new, |letter| format!("-{letter}, "));
    let value = arg.get_value_names().filter(|_| arg.get_action().takes_values());
    let value = value.map_or_else(String::new, |names| names.join(" "));
    let may_lack_value = arg.get_num_args().is_some_and(|range| range.min_values() == 0);
    match value.as_str() {
        "" => format!("{letter}{name}"),
        _ if may_lack_value => format!("{letter}{name}[={value}]"),
        _ => format!("{letter}{name} {value}"),
    }
}

/// A table of what a verb takes; none if that is nothing.
fn table(args: &[&Arg]) -> String {
    if args.is_empty() {
        return String::new();
    }
    let rows = args.iter().map(|arg| {
        let name = if arg.is_positional() {
            arg.get_value_names().map(|names| names.join(" ")).unwrap_or_default()
        } else {
            flag(arg)
        };
        let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
        let others = arg.get_visible_aliases().unwrap_or_default();
        let others: String = others.iter().map(|other| format!(" [alias: --{other}]")).collect();
        format!("| `{}` | {}{others} |\n", cell(&name), cell(&help))
    });
    format!("| option | meaning |\n|---|---|\n{}\n", rows.collect::<String>())
}

/// The part of the page about a verb, and the verbs below it.
fn part(verb: &Command, depth: usize, text: &mut String) {
    let words = verb.get_bin_name().unwrap_or_default();
    *text += &format!("{} `{words}`\n\n", "#".repeat(depth));
    *text += &format!("{}.\n\n", verb.get_about().map(ToString::to_string).unwrap_or_default());
    let usage = verb.clone().render_usage().to_string();
    let usage = usage.trim_start_matches("Usage:").trim();
    *text += &format!("    {usage}\n\n");
    // What holds for all verbs below is told above them.
    let is_own = |arg: &&Arg| depth == 2 || !arg.is_global_set();
    let args: Vec<&Arg> = verb.get_arguments().filter(is_shown).filter(is_own).filter(has_help).collect();
    *text += &table(&args);
    if let Some(more) = verb.get_after_help() {
        let lines = more.to_string();
        let lines = lines.lines().map(|line| if line.is_empty() { "\n".to_owned() } else { format!("    {line}\n") });
        *text += &format!("{}\n", lines.collect::<String>());
    }
    for below in verb.get_subcommands().filter(|below| !below.is_hide_set() && below.get_name() != "help") {
        part(below, depth + 1, text);
    }
}

/// The tables of a verb's flags, one for each heading of its help.
fn by_heading(args: &[&Arg]) -> String {
    let mut headings: Vec<&str> = Vec::new();
    for heading in args.iter().filter_map(|arg| arg.get_help_heading()) {
        if !headings.contains(&heading) {
            headings.push(heading);
        }
    }
    let part = |heading: &&str| {
        let below = args.iter().filter(|arg| arg.get_help_heading() == Some(heading)).copied();
        format!("## {heading}\n\n{}", table(&below.collect::<Vec<_>>()))
    };
    headings.iter().map(part).collect()
}

#[test]
fn flags_page_has_every_flag_of_copy_and_sync_as_help_has_it() {
    let mut tree = whole_tree();
    tree.build();
    let of = |name: &str| tree.find_subcommand(name).expect("a verb").get_arguments().filter(is_shown);
    let copy: Vec<&Arg> = of("copy").filter(|arg| !arg.is_positional()).collect();
    let is_new = |arg: &&Arg| !copy.iter().any(|known| known.get_id() == arg.get_id());
    let sync: Vec<&Arg> = of("sync").filter(|arg| !arg.is_positional()).filter(is_new).collect();
    assert!(copy.len() > 60 && sync.len() > 5, "{} {}", copy.len(), sync.len());
    compare("flags.md", "flags of copy", &format!("{}## Of sync alone\n\n{}", by_heading(&copy), table(&sync)));
}

/// A name that stands for itself, like TASK, needs no row.
fn has_help(arg: &&Arg) -> bool {
    arg.get_help().is_some()
}

#[test]
fn commands_page_has_every_verb_of_managed_transfers_as_help_has_it() {
    let mut tree = whole_tree();
    tree.build();
    let mut text = String::new();
    for name in VERBS {
        part(tree.find_subcommand(name).expect("a verb"), 2, &mut text);
    }
    assert!(text.contains("## `carrack serve`") && text.contains("### `carrack task submit`"), "{text}");
    compare("commands.md", "commands", &text);
}

/// A table of another program's flags, and what becomes of each.
fn foreign(flags: &[ForeignFlag]) -> String {
    let rows = flags.iter().map(|row| {
        let names = row.names.iter().map(|name| format!("`{}`", cell(name))).collect::<Vec<_>>().join(", ");
        let (effect, ours) = match row.effect {
            ForeignEffect::Always | ForeignEffect::Unless(_) => ("without effect", String::new()),
            ForeignEffect::Amid(ours) => ("refused, unless other letters follow", format!(": {}", cell(ours))),
            ForeignEffect::Taken("") => ("taken", String::new()),
            ForeignEffect::Taken(ours) => ("taken", format!(" (`{}`)", cell(ours))),
            ForeignEffect::Ours(ours) => ("refused", format!(": {}", cell(ours))),
            ForeignEffect::Refused => ("refused", format!(": {LEAVE_IT_OUT}")),
            ForeignEffect::Different("") => ("another meaning", String::new()),
            ForeignEffect::Different(ours) => ("another meaning", format!(": `{}`", cell(ours))),
        };
        format!("| {names} | {effect} | {}{ours} |\n", cell(row.why))
    });
    format!("| flag | is | |\n|---|---|---|\n{}", rows.collect::<String>())
}

#[test]
fn pages_have_the_flags_of_other_programs_as_they_are_taken() {
    compare("old-names.md", "flags of bbcp", &foreign(BBCP_FLAGS));
    compare("old-names.md", "flags of globus-url-copy", &foreign(GLOBUS_URL_COPY_FLAGS));
    let of = |programs: &[&str]| {
        let is_of = |whose: &str| whose.replace(" and ", ", ").split(", ").any(|one| programs.contains(&one));
        let rows = FOREIGN_FLAGS.iter().filter(|row| is_of(row.whose));
        foreign(&rows.copied().collect::<Vec<_>>())
    };
    compare("coming-from.md", "flags of rsync, scp and cp", &of(&["rsync", "scp", "cp"]));
    compare("coming-from.md", "flags of rclone", &of(&["rclone"]));
    compare("coming-from.md", "flags of Globus", &foreign(FOREIGN_TASK_FLAGS));
    compare("coming-from.md", "flags of bbcp and globus-url-copy", &of(&["bbcp", "globus-url-copy"]));
}

#[test]
fn lines_of_the_page_for_newcomers_are_lines_of_ours() {
    let text = std::fs::read_to_string(page("coming-from.md")).expect("the page");
    let lines: Vec<&str> = text.split("`$ ").skip(1).filter_map(|rest| rest.split('`').next()).collect();
    assert!(lines.len() >= 20, "{lines:?}");
    for line in lines {
        let words = split_words(line).expect("words").into_iter().map(Into::into).collect();
        let words = crate::cli::bare::with_verb(&whole_tree(), words);
        let parsed = whole_tree().try_get_matches_from(&words);
        let explained = crate::cli::foreign::explain(&parsed, &words);
        assert!(explained.is_none() && parsed.is_ok(), "{line}: {explained:?} {:?}", parsed.err());
    }
}

/// Commands of ours in an indented line of a page, each up to where the shell would do something else, or words explain
/// it. What only shows how a command is built (`[-n]`, `FILE...`) is none.
fn commands_in(line: &str) -> Vec<String> {
    let mut pieces = vec![String::new()];
    let (mut quote, mut spaces) = (None, 0);
    for c in line.trim().trim_start_matches("$ ").chars() {
        let is_open = quote.is_none();
        match c {
            '\'' | '"' if quote == Some(c) => quote = None,
            '\'' | '"' if is_open => quote = Some(c),
            _ => {}
        }
        spaces = if c == ' ' && is_open { spaces + 1 } else { 0 };
        let piece = pieces.last_mut().expect("a piece");
        if spaces == 3 || (is_open && c == '#' && piece.ends_with(' ')) {
            break;
        }
        match c {
            '|' | '&' | ';' | '<' | '>' | '(' | ')' if is_open => pieces.push(String::new()),
            _ => piece.push(c),
        }
    }
    let is_ours = |piece: &String| piece.starts_with("carrack ") && !piece.contains(" [") && !piece.contains("...");
    pieces.iter().map(|piece| piece.trim().to_owned()).filter(is_ours).collect()
}

/// A command with something in the place of each `…`.
fn without_gaps(command: &str) -> String {
    let (pin, mut text) = (format!("sha256:{}", "0".repeat(64)), command.to_owned());
    while let Some(end) = text.find('…') {
        let is_digit = |c: char| c.is_ascii_hexdigit();
        let begin = text[..end].trim_end_matches(is_digit).strip_suffix("sha256:").map(str::len);
        let (begin, what) = begin.map_or((end, "x"), |begin| (begin, pin.as_str()));
        text.replace_range(begin..end + '…'.len_utf8(), what);
    }
    text
}

/// The lines of a page that show what to type, numbered from 1. Behind a line with `$` stands what it prints.
fn typed_lines(text: &str) -> Vec<(usize, &str)> {
    let mut is_answered = false;
    let mut lines = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let Some(code) = line.strip_prefix("    ") else {
            is_answered = false;
            continue;
        };
        let is_typed = code.trim_start().starts_with("$ ");
        is_answered |= is_typed;
        if is_typed || !is_answered {
            lines.push((index + 1, code));
        }
    }
    lines
}

/// Pages for people; what is made from help is none.
fn pages() -> Vec<PathBuf> {
    let of = |folder: &str| {
        let entries = std::fs::read_dir(page("..").join(folder)).expect("a folder");
        let paths = entries.map(|entry| entry.expect("an entry").path());
        let is_page =
            |path: &PathBuf| path.extension().is_some_and(|kind| kind == "md") && !path.ends_with("commands.md");
        paths.filter(is_page).collect::<Vec<_>>()
    };
    [of(""), of("docs"), of("docs/internals")].concat()
}

#[test]
fn lines_of_all_pages_are_lines_of_ours() {
    let (tree, mut found, mut wrong) = (whole_tree(), 0, Vec::new());
    for file in pages() {
        let text = std::fs::read_to_string(&file).expect("a page");
        let lines = typed_lines(&text);
        for (line, command) in lines.iter().flat_map(|(line, code)| commands_in(code).into_iter().map(|it| (*line, it)))
        {
            let words = split_words(&without_gaps(&command)).expect("words");
            let words = crate::cli::bare::with_verb(&tree, words.into_iter().map(Into::into).collect());
            found += 1;
            // Help and version are answers, though they come as errors.
            if let Some(error) = tree.clone().try_get_matches_from(words).err().filter(clap::Error::use_stderr) {
                wrong.push(format!("{}:{line}: {command}\n{error}", file.display()));
            }
        }
    }
    assert!(wrong.is_empty() && found > 300, "{found} lines\n{}", wrong.join("\n"));
}

/// The help of the flag that a key stands for, without its default.
fn meaning(serve: &Command, key: &ConfigKey) -> (String, String) {
    let arg = serve.get_arguments().find(|arg| arg.get_long() == Some(key.flag)).expect("the flag of a key");
    let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
    let help = match help.find(" [default:").or_else(|| help.find(" [repeatable]")) {
        Some(end) => help[..end].to_owned(),
        None => help,
    };
    let value = arg.get_value_names().map(|names| names.join(" ")).unwrap_or_default();
    let value = match key.kind {
        ValueKind::One => value,
        ValueKind::Several => format!("{value}, or an array of them"),
        ValueKind::Switch => "true or false".to_owned(),
    };
    (value, help)
}

#[test]
fn configuration_page_has_every_key_as_the_program_has_it() {
    let serve = super::serve::command();
    let (mut text, mut table) = (String::new(), "");
    for key in KEYS {
        if key.table != table {
            table = key.table;
            text +=
                &format!("\n### `[{table}]`\n\n| key | value | default | meaning | flag |\n|---|---|---|---|---|\n");
        }
        let (value, help) = meaning(&serve, key);
        let (value, help) = (cell(&value), cell(&help));
        text += &format!("| `{}` | {value} | {} | {help} | `--{}` |\n", key.name, key.default, key.flag);
    }
    compare("configuration.md", "keys", &text);
}

#[test]
fn configuration_page_has_an_example_of_every_key_that_serve_takes() {
    let page = std::fs::read_to_string(page("configuration.md")).expect("the page");
    let (_, rest) = page.split_once("```toml\n").expect("an example");
    let (example, _) = rest.split_once("```").expect("its end");
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("carrack.toml");
    std::fs::write(&file, example).expect("written");
    let file = ConfigFile::read(file.as_os_str().as_encoded_bytes(), KEYS).expect("no unknown key");
    for key in KEYS {
        assert!(file.text(key.flag).is_some(), "the example has no {}.{}", key.table, key.name);
    }
    let serve = super::serve::command().get_matches_from(["serve"]);
    let nothing = |_: &str| None;
    let flags = Flags::new(&serve, &nothing);
    check_values(&Settings::with_file(&flags, Some(file))).expect("serve takes the example");
}
