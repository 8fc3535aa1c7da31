//! What ssh, TLS and the network say when a host is not reached, and what it comes from. ssh ends with one number
//! whatever went wrong, and a firewall says nothing: their words are all that there is.

/// Words of a message, what they come from, and what to try.
struct Cause {
    words: &'static str,
    cause: &'static str,
    fix: &'static str,
}

/// The first whose words stand in the message counts: what is special stands before what is general.
const CAUSES: &[Cause] = &[
    Cause {
        words: "kex_exchange_identification: Connection closed",
        cause: "the ssh server ends connections before the login: too many at once (MaxStartups), or it holds earlier \
                failures against this host (PerSourcePenalties)",
        fix: "on that host: journalctl -u ssh | grep -E 'MaxStartups|penalty'; then raise MaxStartups, or exempt this \
              host by PerSourcePenaltyExemptList",
    },
    Cause {
        words: "kex_exchange_identification: read: Connection reset",
        cause: "the ssh server, or a firewall before it, resets connections before the login",
        fix: "on that host: journalctl -u ssh | grep -E 'MaxStartups|penalty', and look for fail2ban and the like",
    },
    Cause {
        words: "Not allowed at this time",
        cause: "the ssh server holds earlier failures against this host (PerSourcePenalties)",
        fix: "wait, or exempt this host there by PerSourcePenaltyExemptList",
    },
    Cause {
        words: "Too many authentication failures",
        cause: "ssh has offered more keys than the server tries",
        fix: "name the one key in your ssh configuration: IdentityFile, and IdentitiesOnly yes",
    },
    Cause {
        words: "Permission denied (",
        cause: "the server takes none of the ways to log in that ssh has",
        fix: "log in by hand with ssh -v: it says which keys were offered; a certificate may have run out",
    },
    Cause {
        words: "REMOTE HOST IDENTIFICATION HAS CHANGED",
        cause: "the host shows another key than before: it was set up anew, or somebody is in between",
        fix: "ask its administrator for the fingerprint; then ssh-keygen -R HOST",
    },
    Cause {
        words: "Host key verification failed",
        cause: "the host's key is not known, and nobody could be asked",
        fix: "connect once by hand: ssh HOST true",
    },
    Cause {
        words: "no matching key exchange method found",
        cause: "one of the two ssh programs is too old for the other",
        fix: "update the older one",
    },
    Cause {
        words: "no matching host key type found",
        cause: "one of the two ssh programs is too old for the other",
        fix: "update the older one, or allow the type for that host: HostKeyAlgorithms +ssh-rsa",
    },
    Cause {
        words: "Could not resolve hostname",
        cause: "the name leads nowhere, or no name server answers",
        fix: "getent hosts HOST; an alias stands in ~/.ssh/config",
    },
    Cause {
        words: "administratively prohibited",
        cause: "the jump host does not pass connections on",
        fix: "AllowTcpForwarding yes on the jump host, or another one",
    },
    Cause {
        words: "Network is unreachable",
        cause: "this host has no route there",
        fix: "ip route get ADDRESS; then add the route",
    },
    Cause {
        words: "No route to host",
        cause: "the last router does not find the host, or a firewall says so (reject with host-prohibited)",
        fix: "is the host up, and does its firewall let this port in?",
    },
    Cause {
        words: "Connection refused",
        cause: "the host is there, and nobody listens on that port, or a firewall refuses it",
        fix: "on that host: ss -ltn shows who listens; start the server, or name its port",
    },
    Cause {
        words: "timed out",
        cause: "a firewall drops packets without a word, or the host is down",
        fix: "let the port in on that host and on the networks between; ping tells whether the host is there",
    },
    Cause {
        words: "Connection reset by peer",
        cause: "a firewall or the server has ended the connection",
        fix: "look into the server's log; a firewall that inspects traffic must let this port pass",
    },
    Cause {
        words: "Broken pipe",
        cause: "the connection was idle for longer than a firewall or router remembers it",
        fix: "ServerAliveInterval 15 in your ssh configuration",
    },
    Cause {
        words: "InvalidMessage",
        cause: "what answers does not speak TLS: another service, or a proxy in between",
        fix: "is that the node's port? A proxy that opens TLS must let it pass",
    },
    Cause {
        words: "peer is incompatible",
        cause: "what answers speaks TLS, but not as a node does: another service, or a proxy that opens TLS",
        fix: "is that the node's port? A proxy that opens TLS must let it pass",
    },
    Cause {
        words: "no TLS session",
        cause: "something between ends TLS, or another service answers",
        fix: "is that the node's port? A firewall that inspects TLS must let it pass",
    },
    Cause {
        words: "command not found",
        cause: "the program is not on the PATH of a session there",
        fix: "name it by --remote-path, or let it be sent: leave --no-push out",
    },
];

/// What a message comes from, and what to try; `None` if its words are not known.
pub(super) fn cause(message: &str) -> Option<(&'static str, &'static str)> {
    CAUSES.iter().find(|cause| message.contains(cause.words)).map(|cause| (cause.cause, cause.fix))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_lead_to_their_cause_and_the_special_ones_come_first() {
        let of = |message: &str| cause(message).map_or("", |(cause, _)| cause);
        assert!(of("far: kex_exchange_identification: Connection closed by remote host").contains("MaxStartups"));
        assert!(of("kex_exchange_identification: read: Connection reset by peer").contains("before the login"));
        assert!(of("ssh: connect to host far port 22: Connection refused").contains("nobody listens"));
        assert!(of("ssh: connect to host far port 22: Connection timed out").contains("drops packets"));
        assert!(of("me@far: Permission denied (publickey).").contains("log in"));
        assert!(of("no TLS session: received corrupt message of type InvalidMessage").contains("does not speak TLS"));
        assert_eq!(cause("something else"), None);
        for (index, one) in CAUSES.iter().enumerate() {
            // None is hidden by one before it.
            let before = CAUSES[..index].iter().find(|before| one.words.contains(before.words));
            assert!(before.is_none(), "{} never counts", one.words);
        }
    }
}
