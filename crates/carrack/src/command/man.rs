//! `carrack man`: the manual, from the tree of verbs and flags itself. Without a directory `carrack.1`, with one a page
//! for each verb.

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use carrack_core::location::Location;
use clap::Command;
use clap_mangen::Man;

use crate::cli::flag::Positional;
use crate::cli::flags::Flags;
use crate::error::CommandError;
use crate::exit;
use crate::output::stream;

const DIRECTORY: Positional = Positional::one("directory", "DIR");

/// What clap knows of it.
pub fn command() -> Command {
    Command::new("man").about("Print the manual page, or write one for each verb into DIR").arg(DIRECTORY.arg())
}

/// Runs the verb, with the whole tree.
pub fn run(flags: &Flags, tree: Command) -> Result<u8, CommandError> {
    match flags.locations(&DIRECTORY)?.pop() {
        None => {
            let (_, page) = pages(tree).remove(0);
            stream::print(&page)?;
        }
        Some(Location::Local(path)) => {
            let directory = Path::new(OsStr::from_bytes(&path));
            write_pages(directory, tree)
                .map_err(|error| CommandError::file("cannot write manual pages into", &path, &error))?;
        }
        Some(other) => {
            return Err(CommandError::usage(format!("man writes into a directory here, not to {other}")));
        }
    }
    Ok(exit::DONE)
}

fn write_pages(directory: &Path, tree: Command) -> io::Result<()> {
    std::fs::create_dir_all(directory)?;
    pages(tree).into_iter().try_for_each(|(name, page)| std::fs::write(directory.join(name), page))
}

/// File names and contents; `carrack.1` first.
fn pages(tree: Command) -> Vec<(String, Vec<u8>)> {
    // clap's own "help" verb would get a page of its own.
    let mut tree = tree.disable_help_subcommand(true);
    // Gives each verb the name `carrack-VERB`.
    tree.build();
    let mut pages = Vec::new();
    add_pages(&tree, &mut pages);
    pages
}

/// Of a verb, then of the verbs below it.
fn add_pages(verb: &Command, pages: &mut Vec<(String, Vec<u8>)>) {
    pages.push(page(verb));
    let is_for_people = |part: &&Command| !part.is_hide_set() && part.get_name() != "help";
    verb.get_subcommands().filter(is_for_people).for_each(|part| add_pages(part, pages));
}

fn page(command: &Command) -> (String, Vec<u8>) {
    let manual = Man::new(command.clone()).manual("Carrack").source(concat!("carrack ", env!("CARGO_PKG_VERSION")));
    let mut text = Vec::new();
    // Writing into memory cannot fail.
    let _ = manual.render(&mut text);
    (manual.get_filename(), text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::whole_tree;

    #[test]
    fn man_pages_are_one_for_each_verb_and_none_for_the_hidden() {
        let names: Vec<String> = pages(whole_tree()).into_iter().map(|(name, _)| name).collect();
        assert_eq!(names[0], "carrack.1");
        for verb in [
            "copy",
            "ls",
            "stat",
            "mkdir",
            "mv",
            "rm",
            "sum",
            "du",
            "gc",
            "bench",
            "bench-disk",
            "doctor",
            "report",
            "token",
            "token-add",
            "tuning",
            "tuning-clear",
            "service-token-create",
            "serve",
            "completions",
            "man",
        ] {
            assert!(names.contains(&format!("carrack-{verb}.1")), "{verb}");
        }
        assert!(!names.iter().any(|name| name.contains("worker")));
    }

    #[test]
    fn man_pages_have_exit_codes_and_flags() {
        let pages = pages(whole_tree());
        let text = |index: usize| String::from_utf8_lossy(&pages[index].1).replace("\\-", "-");
        assert!(text(0).contains("Exit codes:") && text(0).contains("77"));
        assert!(text(1).contains("bwlimit") && text(1).contains("carrack-copy"));
        assert!(pages.iter().all(|(name, page)| page.len() > 200 || panic!("{name} is empty")));
    }

    #[test]
    fn pages_are_written() {
        let directory = tempfile::tempdir().expect("a directory");
        let below = directory.path().join("man1");
        write_pages(&below, whole_tree()).expect("written");
        assert!(below.join("carrack-copy.1").exists());
    }
}
