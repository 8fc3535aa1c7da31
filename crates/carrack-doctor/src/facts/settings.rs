//! Which file sets a kernel parameter at the next boot.

use std::collections::BTreeMap;

use carrack_core::evidence::EvidenceText;

use super::HostFacts;
use crate::known::Known;

/// Directories, as sysctl.d(5) has them: a file in an earlier one hides a file of the same name in a later one.
const DIRECTORIES: &[&str] =
    &["etc/sysctl.d/", "run/sysctl.d/", "usr/local/lib/sysctl.d/", "usr/lib/sysctl.d/", "lib/sysctl.d/"];
/// What `sysctl --system` reads last. systemd reads it only by a link in its directories, in the place of its name.
const LAST: &str = "etc/sysctl.conf";
/// Is there where systemd has started the host.
const SYSTEMD: &str = "run/systemd/system";

/// A value that a parameter will have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AtBoot {
    /// The value, its words separated by single spaces.
    pub value: String,
    /// The file that has the last word, as a person knows it.
    pub file: String,
    /// Files before it that set something else.
    pub overruled: Vec<String>,
}

impl<'a> HostFacts<'a> {
    /// The parameters that files set at boot, by their names with dots, and which file has the last word.
    ///
    /// The files of all directories are read in the order of their names, whatever directory they lie in; a later line
    /// overrules an earlier one. Patterns (`net.ipv4.conf.*`) are left out.
    pub fn at_boot(&self) -> BTreeMap<String, AtBoot> {
        let mut all: BTreeMap<String, AtBoot> = BTreeMap::new();
        for (file, text) in self.boot_files() {
            for (name, value) in text.lines().filter_map(assignment) {
                let shown = format!("/{file}");
                let next = AtBoot { value, file: shown, overruled: Vec::new() };
                match all.entry(name) {
                    std::collections::btree_map::Entry::Vacant(place) => drop(place.insert(next)),
                    std::collections::btree_map::Entry::Occupied(mut place) => {
                        let old = place.insert(next);
                        let new = place.get_mut();
                        let differs = old.value != new.value && old.file != new.file;
                        new.overruled = old.overruled;
                        new.overruled.extend(differs.then_some(old.file));
                    }
                }
            }
        }
        all
    }

    /// The files in the order in which they are read.
    fn boot_files(&self) -> Vec<(String, &'a str)> {
        let mut by_name: BTreeMap<&str, (String, &'a str)> = BTreeMap::new();
        for directory in DIRECTORIES {
            for (name, text) in self.evidence.below(directory) {
                if let EvidenceText::Found(text) = text {
                    by_name.entry(name).or_insert_with(|| (format!("{directory}{name}"), text.as_str()));
                }
            }
        }
        let last = self.evidence.found(LAST).filter(|_| self.evidence.found(SYSTEMD).is_none());
        let last = last.map(|text| (LAST.to_owned(), text));
        by_name.into_values().chain(last).collect()
    }

    /// What a parameter is now, its words separated by single spaces.
    pub fn parameter(&self, name: &str) -> Known<String> {
        let text = self.text(&format!("proc/sys/{}", name.replace('.', "/")))?;
        Ok(one_line(text))
    }

    /// The parameters that the profiles of tuned set, the one in force last: name, value, and profile.
    pub fn tuned(&self) -> Vec<(String, String, &'a str)> {
        let all = self.evidence.below("tuned/");
        let mut profiles: Vec<(&str, &str)> =
            all.filter_map(|(name, _)| Some((name, self.evidence.found(&format!("tuned/{name}"))?))).collect();
        // The first is the profile itself, and overrules those that it includes.
        profiles.reverse();
        let mut all: Vec<(String, String, &'a str)> = Vec::new();
        for (name, text) in profiles {
            let profile = name.split_once('/').map_or(name, |(_, profile)| profile);
            let mut in_section = false;
            for line in text.lines().map(str::trim) {
                if line.starts_with('[') {
                    in_section = line == "[sysctl]";
                } else if let Some((name, value)) = assignment(line).filter(|_| in_section) {
                    all.retain(|(known, ..)| *known != name);
                    // `>10` keeps what is more.
                    let value = value.trim_start_matches('>').trim_matches('"').to_owned();
                    all.push((name, value, profile));
                }
            }
        }
        all
    }
}

/// `-net.ipv4.tcp_rmem = 4096 131072 6291456`
fn assignment(line: &str) -> Option<(String, String)> {
    let line = line.trim();
    if line.is_empty() || line.starts_with(['#', ';']) {
        return None;
    }
    let (name, value) = line.trim_start_matches('-').split_once('=')?;
    let name = name.trim().replace('/', ".");
    (!name.is_empty() && !name.contains(['*', '?', '['])).then(|| (name, one_line(value)))
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::situation::{Host, HostSide};

    #[test]
    fn last_name_wins_and_a_file_in_etc_hides_its_namesake() {
        let host = Host::saying(&[
            ("etc/sysctl.d/90-net.conf", "net.core.rmem_max = 1\nvm.swappiness=10\n"),
            ("usr/lib/sysctl.d/95-vendor.conf", "# vm.swappiness=5\nvm/swappiness =  60\n"),
            ("usr/lib/sysctl.d/90-net.conf", "net.core.rmem_max = 2\nnet.core.wmem_max = 2\n"),
            ("run/sysctl.d/10-early.conf", "-net.core.rmem_max=7\nnet.ipv4.conf.*.rp_filter=1\n"),
            ("etc/sysctl.conf", "net.core.somaxconn=4096\n"),
        ]);
        let facts = HostFacts::of(HostSide::Near, &host).unwrap();
        let all = facts.at_boot();
        let told = |name: &str| (all[name].value.as_str(), all[name].file.as_str());
        assert_eq!(told("net.core.rmem_max"), ("1", "/etc/sysctl.d/90-net.conf"));
        assert_eq!(all["net.core.rmem_max"].overruled, ["/run/sysctl.d/10-early.conf"]);
        assert_eq!(told("vm.swappiness"), ("60", "/usr/lib/sysctl.d/95-vendor.conf"));
        assert_eq!(told("net.core.somaxconn"), ("4096", "/etc/sysctl.conf"));
        assert!(!all.contains_key("net.core.wmem_max") && all.len() == 3, "{all:?}");
    }

    #[test]
    fn systemd_reads_the_oldest_file_by_a_link_alone() {
        let conf = "net.core.somaxconn=4096\n";
        let drop_in = ("etc/sysctl.d/99-zz-carrack.conf", "net.core.somaxconn=8192\n");
        let at_boot = |texts: &[(&str, &str)]| {
            let host = Host::saying(&[&[drop_in, ("etc/sysctl.conf", conf)], texts].concat());
            let all = HostFacts::of(HostSide::Near, &host).unwrap().at_boot();
            (all["net.core.somaxconn"].value.clone(), all["net.core.somaxconn"].file.clone())
        };
        let told = |value: &str, file: &str| (value.to_owned(), file.to_owned());
        assert_eq!(at_boot(&[]), told("4096", "/etc/sysctl.conf"));
        let systemd = (SYSTEMD, "");
        assert_eq!(at_boot(&[systemd]), told("8192", "/etc/sysctl.d/99-zz-carrack.conf"));
        let link = ("etc/sysctl.d/99-sysctl.conf", conf);
        assert_eq!(at_boot(&[systemd, link]), told("8192", "/etc/sysctl.d/99-zz-carrack.conf"));
    }

    #[test]
    fn profile_overrules_what_it_includes() {
        let host = Host::saying(&[
            ("tuned/1/network-throughput", "[main]\ninclude=throughput\n[sysctl]\nnet.ipv4.tcp_rmem=\"4096 1 2\"\n"),
            ("tuned/2/throughput", "[sysctl]\nnet.ipv4.tcp_rmem=9\nvm.dirty_ratio = 40\n[vm]\nvm.x=1\n"),
        ]);
        let facts = HostFacts::of(HostSide::Near, &host).unwrap();
        let all = facts.tuned();
        let pairs: Vec<_> =
            all.iter().map(|(name, value, profile)| (name.as_str(), value.as_str(), *profile)).collect();
        assert_eq!(
            pairs,
            [("vm.dirty_ratio", "40", "throughput"), ("net.ipv4.tcp_rmem", "4096 1 2", "network-throughput")]
        );
    }
}
