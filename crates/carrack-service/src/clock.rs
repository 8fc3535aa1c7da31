//! The clock of the service: injected, so that tests and the simulation set the time.

use std::fmt;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use carrack_core::attributes::Time;
use carrack_core::words::quoted;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use utoipa::openapi::schema::SchemaFormat;
use utoipa::openapi::{ObjectBuilder, RefOr, Schema, Type};

/// A moment of the wall clock: microseconds since 1970, UTC. In JSON it is RFC 3339. For people and records alone:
/// how long something lasts is told by [`Clock::elapsed`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Moment(pub i64);

impl Moment {
    /// Parses a time as RFC 3339 has it.
    ///
    /// # Errors
    /// The sentence that refuses the text.
    pub fn parse(text: &str) -> Result<Self, String> {
        let refused = |_| format!("{} is not a time: use RFC 3339, like 2026-11-23T08:00:00Z", quoted(text));
        text.parse().map(|time: jiff::Timestamp| Self(time.as_microsecond())).map_err(refused)
    }

    /// As a header of HTTP has it, in whole seconds; none of a time that no calendar has.
    pub fn http_date(self) -> Option<String> {
        let timestamp = jiff::Timestamp::from_microsecond(self.0).ok()?;
        jiff::fmt::rfc2822::DateTimePrinter::new().timestamp_to_rfc9110_string(&timestamp).ok()
    }

    /// So much later; the last moment there is where that is too far.
    #[must_use]
    pub fn after(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)))
    }

    /// Seconds since midnight, by the time zone of this host.
    pub fn second_of_day(self) -> u32 {
        let Ok(now) = jiff::Timestamp::from_microsecond(self.0) else { return 0 };
        let now = now.to_zoned(jiff::tz::TimeZone::system());
        let (hour, minute, second) = (now.hour(), now.minute(), now.second());
        [hour, minute, second].into_iter().fold(0, |all, part| all * 60 + u32::from(part.unsigned_abs()))
    }

    /// Whether it can be told as a date.
    pub fn is_told(self) -> bool {
        jiff::Timestamp::from_microsecond(self.0).is_ok()
    }

    /// How long after `earlier` this is; zero if it is not.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_micros(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }
}

impl From<Moment> for Time {
    fn from(moment: Moment) -> Self {
        Self::new(moment.0.div_euclid(1_000_000), (moment.0.rem_euclid(1_000_000) * 1000) as u32)
    }
}

impl From<SystemTime> for Moment {
    fn from(time: SystemTime) -> Self {
        let micros = |duration: Duration| i64::try_from(duration.as_micros()).unwrap_or(i64::MAX);
        Self(match time.duration_since(UNIX_EPOCH) {
            Ok(after) => micros(after),
            Err(before) => -micros(before.duration()),
        })
    }
}

impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match jiff::Timestamp::from_microsecond(self.0) {
            Ok(time) => write!(f, "{time}"),
            Err(_) => f.write_str("beyond any clock"),
        }
    }
}

impl Serialize for Moment {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Moment {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::parse(&String::deserialize(deserializer)?).map_err(de::Error::custom)
    }
}

impl utoipa::PartialSchema for Moment {
    fn schema() -> RefOr<Schema> {
        let format = SchemaFormat::KnownFormat(utoipa::openapi::KnownFormat::DateTime);
        ObjectBuilder::new().schema_type(Type::String).format(Some(format)).into()
    }
}

impl utoipa::ToSchema for Moment {}

/// Tells the time.
pub trait Clock: Send + Sync + 'static {
    /// The wall clock, which people set and which may step. For records and for what people asked for by date.
    fn now(&self) -> Moment;

    /// Time since some fixed moment of this process, which never steps back. For leases, timeouts and pauses.
    fn elapsed(&self) -> Duration;
}

/// The clocks of this host.
#[derive(Debug)]
pub struct SystemClock {
    began: Instant,
}

impl SystemClock {
    /// A clock that counts from now.
    pub fn new() -> Self {
        Self { began: Instant::now() }
    }
}

impl Default for SystemClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Moment {
        SystemTime::now().into()
    }

    fn elapsed(&self) -> Duration {
        self.began.elapsed()
    }
}
