//! An iperf3 server of somebody else as the far end: the iperf3 that is installed here asks it, and what it says is a
//! result like any other.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use carrack_core::failure::{ErrorCode, Failure};
use carrack_engine::Context;
use carrack_measure::facts;
use carrack_measure::result::Measurement;
use serde_json::Value;

use super::plan::{NetChoice, NetMode, NetStep, NetWay};
use super::row;
use super::said::{self, SaidWay};
use crate::bench::ladder::{TellRow, incomplete};

/// A server of iperf3.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Iperf3Server {
    /// Its name or address.
    pub host: String,
    /// Its port.
    pub port: u16,
}

/// What to ask it for.
pub struct TheirRequest {
    /// Whom.
    pub server: Iperf3Server,
    /// Which rows: in the clear, as it sends nothing else, and each way by itself.
    pub choice: NetChoice,
    /// How long each is measured.
    pub time: Duration,
    /// What is left out before that.
    pub warm_up: Duration,
    /// The congestion control of the sender, where one was asked for.
    pub congestion: Option<String>,
}

/// The port that iperf3 has, unless it is told another.
const PORT: u16 = 5201;
/// Beyond the time of the test itself: it connects, and both sides tell what they counted.
const PATIENCE: Duration = Duration::from_secs(20);

impl Iperf3Server {
    /// `HOST`, `HOST:PORT`, `[ADDRESS]:PORT`.
    ///
    /// # Errors
    /// A sentence, for what is no such place.
    pub fn parse(text: &str) -> Result<Self, String> {
        let no = || format!("{text:?} is no host of an iperf3 server: use HOST or HOST:PORT");
        let (host, port) = match text.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            Some((host, rest)) => (host, rest.strip_prefix(':').or_else(|| rest.is_empty().then_some(""))),
            None if text.matches(':').count() == 1 => {
                text.split_once(':').map(|(host, port)| (host, Some(port))).unwrap_or((text, Some("")))
            }
            None => (text, Some("")),
        };
        let port = match port.ok_or_else(no)? {
            "" => PORT,
            port => port.parse().map_err(|_| no())?,
        };
        // What begins with a dash would be taken for an option.
        let is_name = !host.is_empty() && !host.starts_with('-') && !host.contains(char::is_whitespace);
        if is_name && port > 0 { Ok(Self { host: host.to_owned(), port }) } else { Err(no()) }
    }
}

/// Measures, and tells each row when it is there. What ended it early stands beside what was measured.
pub fn measure(request: &TheirRequest, context: &Context, tell: &mut dyn TellRow) -> (Measurement, Option<Failure>) {
    let (begin, started) = (Instant::now(), carrack_sys::host::clock_seconds());
    let (mut rows, mut first, mut facts) = (Vec::new(), None, facts::host().0);
    for step in steps(&request.choice) {
        let mut row = row::named(step, step.way == NetWay::Back);
        if first.as_ref().is_some_and(|why: &Failure| why.code == ErrorCode::Interrupted) {
            break;
        }
        match ask(request, step, context) {
            Ok(said) => {
                said::fill(&mut row, &said, SaidWay::only(step.way == NetWay::Back));
                if !facts.iter().any(|(name, _)| name == "iperf3") {
                    facts.push(("iperf3".to_owned(), said::version(&said)));
                }
            }
            Err(why) => {
                row.error = Some(why.to_string());
                first.get_or_insert(why);
            }
        }
        tell.row(&row);
        rows.push(row);
    }
    let settings = [
        ("time_seconds", Some(request.time.as_secs_f64().to_string())),
        ("warm_up_seconds", Some(request.warm_up.as_secs_f64().to_string())),
        (super::CONGESTION, request.congestion.clone()),
        ("far_end", Some("iperf3".to_owned())),
    ];
    let measured = Measurement {
        kind: "net".to_owned(),
        target: format!("iperf3 {}:{}", request.server.host, request.server.port),
        started,
        elapsed: begin.elapsed(),
        settings: settings.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect(),
        facts,
        warnings: first.as_ref().map(incomplete).into_iter().collect(),
        rows,
    };
    (measured, first)
}

/// A server serves one test at a time, in the clear.
fn steps(choice: &NetChoice) -> Vec<NetStep> {
    let ways = if choice.ways.is_empty() { vec![NetWay::There, NetWay::Back] } else { choice.ways.clone() };
    let choice = NetChoice { modes: vec![NetMode::Clear], ways, ..choice.clone() };
    choice.steps().into_iter().filter(|step| step.way != NetWay::Both).collect()
}

fn arguments(request: &TheirRequest, step: NetStep) -> Vec<String> {
    let mut words = vec!["-J".to_owned()];
    let seconds = |time: Duration| time.as_secs().max(1).to_string();
    for (flag, value) in [
        ("-c", request.server.host.clone()),
        ("-p", request.server.port.to_string()),
        ("-t", seconds(request.time)),
        ("-P", step.streams.unwrap_or(1).to_string()),
    ] {
        words.extend([flag.to_owned(), value]);
    }
    if !request.warm_up.is_zero() {
        words.extend(["-O".to_owned(), seconds(request.warm_up)]);
    }
    words.extend((step.way == NetWay::Back).then(|| "-R".to_owned()));
    words.extend(request.congestion.iter().flat_map(|control| ["-C".to_owned(), control.clone()]));
    words
}

/// Asks for one test, and gives the document of it.
fn ask(request: &TheirRequest, step: NetStep, context: &Context) -> Result<Value, Failure> {
    let mut command = Command::new("iperf3");
    command.args(arguments(request, step)).stdin(Stdio::null());
    let end = Instant::now() + request.time + request.warm_up + PATIENCE;
    said::document_of(&mut command, Some(end), context)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_have_a_port_or_the_usual_one() {
        let of = |text: &str| Iperf3Server::parse(text).map(|server| (server.host, server.port)).ok();
        let place = |host: &str, port| Some((host.to_owned(), port));
        assert_eq!(of("perfsonar.example.org"), place("perfsonar.example.org", 5201));
        assert_eq!((of("far:5301"), of("[fd77::2]:5301")), (place("far", 5301), place("fd77::2", 5301)));
        assert_eq!((of("fd77::2"), of("[fd77::2]")), (place("fd77::2", 5201), place("fd77::2", 5201)));
        for bad in ["", "-c", "far:x", "far:0", "far:", "a b", "[::1]x"] {
            assert_eq!(of(bad), (bad == "far:").then(|| ("far".to_owned(), 5201)), "{bad:?}");
        }
    }

    #[test]
    fn tests_are_asked_for_as_they_were_chosen() {
        let request = TheirRequest {
            server: Iperf3Server { host: "far".to_owned(), port: 5301 },
            choice: NetChoice { streams: vec![Some(1), Some(8)], ..NetChoice::default() },
            time: Duration::from_secs(3),
            warm_up: Duration::from_secs(1),
            congestion: Some("bbr".to_owned()),
        };
        let lines: Vec<String> =
            steps(&request.choice).into_iter().map(|step| arguments(&request, step).join(" ")).collect();
        assert_eq!(lines.len(), 4, "{lines:?}");
        assert_eq!(lines[0], "-J -c far -p 5301 -t 3 -P 1 -O 1 -C bbr");
        assert_eq!(lines[3], "-J -c far -p 5301 -t 3 -P 8 -O 1 -R -C bbr");
    }
}
