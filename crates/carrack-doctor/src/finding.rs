//! What a rule has found.

use carrack_core::words;

use crate::situation::HostSide;

words! {
    /// How bad a finding is.
    #[derive(PartialOrd, Ord)]
    pub enum Severity {
        0 Ok "ok" "as it should be"
        1 Unknown "unknown" "it cannot be known here"
        2 Warning "warning" "it costs speed, or may"
        3 Failure "failure" "it keeps data from moving, or moving at a useful rate"
    }
}

words! {
    /// What a threshold rests on.
    pub enum EvidenceClass {
        0 Kernel "kernel" "a fact of the kernel or of a protocol"
        1 EsnetTable "esnet-table" "the tables of ESnet and of the Open Science Grid for data transfer nodes"
        2 OneOperator "one-operator" "the word of a single operator"
        3 Ours "ours" "measured by Carrack's authors"
    }
}

/// What mends it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fix {
    /// A kernel parameter, by its name with dots, and the value that it should have.
    Sysctl {
        /// As `net.ipv4.tcp_rmem`.
        name: String,
        /// As `4096 131072 33554432`.
        value: String,
    },
    /// A command, for the host that the finding is of.
    Command(String),
    /// What a person has to do.
    Advice(String),
}

impl Fix {
    /// As a line for a shell, or as a sentence.
    pub fn line(&self) -> String {
        match self {
            Self::Sysctl { name, value } if value.contains(' ') => format!("sysctl -w {name}='{value}'"),
            Self::Sysctl { name, value } => format!("sysctl -w {name}={value}"),
            Self::Command(line) | Self::Advice(line) => line.clone(),
        }
    }

    /// Whether it can be typed as it stands.
    pub fn is_command(&self) -> bool {
        !matches!(self, Self::Advice(_))
    }
}

/// What a rule has found on one host, or between two.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The rule's name, for ever: `tcp.window`.
    pub rule: &'static str,
    /// Which host; `None` for the path between two.
    pub side: Option<HostSide>,
    /// What it is about, where a rule is about several things: an interface, a file system.
    pub subject: String,
    /// How bad it is.
    pub severity: Severity,
    /// What was found.
    pub value: String,
    /// What it should be.
    pub threshold: String,
    /// What it costs here, in numbers where they are known; empty if nothing.
    pub cost: String,
    /// What mends it.
    pub fix: Option<Fix>,
    /// Where the threshold is from.
    pub source: &'static str,
    /// What that rests on.
    pub class: EvidenceClass,
}

/// The worst first; among equals in the order in which they were found.
pub fn sort(findings: &mut [Finding]) {
    findings.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fix_is_a_line_for_a_shell() {
        let sysctl = |value: &str| Fix::Sysctl { name: "net.ipv4.tcp_rmem".into(), value: value.into() }.line();
        assert_eq!(sysctl("4096 131072 33554432"), "sysctl -w net.ipv4.tcp_rmem='4096 131072 33554432'");
        assert_eq!(sysctl("1"), "sysctl -w net.ipv4.tcp_rmem=1");
        assert!(!Fix::Advice("ask".into()).is_command() && Fix::Command("ip link".into()).is_command());
    }
}
