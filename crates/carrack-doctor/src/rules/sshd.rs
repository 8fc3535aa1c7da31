//! How the ssh server takes a crowd of sessions.

use super::{Check, Limit, Rule, Threshold, Told, View};
use crate::finding::EvidenceClass::{Kernel, Ours};
use crate::known::{Known, Unknown};

const MANUAL: &str = "sshd_config(5)";

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "sshd.startups",
        threshold: Threshold::of(
            "MaxStartups begins to refuse at {} or more logins that are under way, sshd's default",
            &[Limit::Count(STARTUPS)],
        ),
        reason: "sshd drops connections at random while so many have not logged in yet",
        source: MANUAL,
        class: Ours,
        check: Check::Host(startups),
    },
    Rule {
        id: "sshd.penalties",
        threshold: Threshold::plain("known"),
        reason: "from OpenSSH 9.8 on a host whose logins fail is refused for a while",
        source: MANUAL,
        class: Kernel,
        check: Check::Host(penalties),
    },
];

/// Logins at once that are usual: a copy takes one, whatever its streams. Also what sshd has by itself.
const STARTUPS: u64 = 10;
/// What to set: `begin:percent:full`.
const STARTUPS_SET: &str = "100:30:300";

fn startups(view: &View<'_>) -> Known<Vec<Told>> {
    let Some(title) = view.facts.if_any("sshd/listener")? else { return Ok(Vec::new()) };
    // The settings in force, where this user may ask for them; else the title: `3 of 10-100 startups`.
    let (begin, most, now) = match view.facts.line("command/sshd -T", "maxstartups") {
        Ok(text) => {
            let mut numbers = text.split(':').map(|word| word.parse::<u64>().ok());
            let begin = numbers.next().flatten();
            let most = numbers.nth(1).flatten();
            begin
                .map(|begin| (begin, most.unwrap_or(begin), None))
                .ok_or_else(|| Unknown::because("sshd -T tells no MaxStartups"))?
        }
        Err(_) => of_title(title).ok_or_else(|| Unknown::because("sshd does not tell its MaxStartups"))?,
    };
    let waiting = now.map(|now| format!(", {now} of them taken")).unwrap_or_default();
    let value = format!("MaxStartups begins to refuse at {begin} and refuses all at {most}{waiting}");
    if begin >= STARTUPS {
        return Ok(vec![Told::ok(value)]);
    }
    let told = Told::warning(value).costs(format!(
        "of more than {begin} logins at once some fail with \"Connection closed\" or \"reset by peer\""
    ));
    Ok(vec![told.command(format!(
        "echo 'MaxStartups {STARTUPS_SET}' > /etc/ssh/sshd_config.d/10-startups.conf && systemctl reload ssh"
    ))])
}

/// `… [listener] 0 of 10-100 startups`
fn of_title(title: &str) -> Option<(u64, u64, Option<u64>)> {
    let (_, rest) = title.split_once("[listener] ")?;
    let (now, rest) = rest.split_once(" of ")?;
    let (begin, rest) = rest.split_once('-')?;
    Some((begin.parse().ok()?, rest.split(' ').next()?.parse().ok()?, now.parse().ok()))
}

fn penalties(view: &View<'_>) -> Known<Vec<Told>> {
    if view.facts.if_any("sshd/listener")?.is_none() {
        return Ok(Vec::new());
    }
    match view.facts.line("command/sshd -T", "persourcepenalties") {
        Ok(text) => Ok(vec![Told::ok(text.chars().take(120).collect::<String>())]),
        Err(why) => Err(why),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn title_of_the_listener_tells_its_limits() {
        let title = "sshd: /usr/sbin/sshd -D [listener] 3 of 10-100 startups";
        assert_eq!(of_title(title), Some((10, 100, Some(3))));
        assert_eq!(of_title("sshd: me@pts/0"), None);
    }
}
