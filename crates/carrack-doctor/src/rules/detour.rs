//! Whether data goes by a slower interface than both hosts have for it.

use std::net::IpAddr;

use super::{Told, View};
use crate::facts::Interface;
use crate::known::Known;
use crate::units;

/// An interface that is faster than the carrier.
struct Faster<'a> {
    one: Interface<'a>,
    speed: u64,
    /// The address that the other host has in one of its networks.
    other: Option<IpAddr>,
}

pub(super) fn slower(view: &View<'_>) -> Known<Vec<Told>> {
    if view.situation.is_alone() {
        return Ok(Vec::new());
    }
    let route = view.facts.route()?;
    let carrier = view.facts.carrier()?;
    let speed = carrier.speed()?;
    let carries = format!("{} ({})", carrier.name, units::bits(speed as f64));
    let is_v6 = route.to.contains(':');
    let faster = view.facts.interfaces().into_iter().filter(|one| leads_out(one, &carrier));
    let faster =
        faster.filter_map(|one| Some(Faster { one, speed: one.speed().ok()?, other: shared(view, &one, is_v6) }));
    // A network without the other host, as that of a storage, is no way there, however fast it is.
    let best = faster.filter(|one| one.speed > speed).max_by_key(|one| (one.other.is_some(), one.speed));
    let Some(Faster { one: best, speed: most, other }) = best else {
        return Ok(vec![Told::ok(carries).about(carrier.name)]);
    };
    let faster = format!("{} ({})", best.name, units::bits(most as f64));
    let Some(other) = other else {
        let value = format!("{carries}; {faster} is up, and the other host has no address in its network");
        return Ok(vec![Told::ok(value).about(carrier.name)]);
    };
    let told = Told::warning(format!("data to {} goes by {carries}, and {faster} is up", route.to)).about(carrier.name);
    let [now, then] = [speed, most].map(|bits| units::rate(bits as f64 / 8.0));
    let told = told.costs(format!("no more than {now} instead of {then}"));
    Ok(vec![if other.is_ipv6() == is_v6 {
        let via = if other.to_string() == route.to { String::new() } else { format!(" via {other}") };
        let line = format!("{} route replace {}{via} dev {}", super::ip(route.to), route.to, best.name);
        told.command(format!("{line}   # or name the other host by {other}"))
    } else {
        told.advice(format!("name the other host by {other}"))
    }])
}

/// Whether data could go by it. One that belongs to a bond has no address; its bond has. A bridge of containers and
/// the links to them lead nowhere else.
fn leads_out(one: &Interface<'_>, carrier: &Interface<'_>) -> bool {
    if one.name == carrier.name || !one.is_up() || one.is_loopback() || one.networks().is_empty() {
        return false;
    }
    match one.kind() {
        Ok("bridge" | "veth") => false,
        Ok("bond" | "team" | "vlan") => true,
        Ok(_) | Err(_) => one.is_hardware() || !carrier.is_hardware(),
    }
}

/// The address of the other host in a network of this interface; of the version of the route's, if there is one.
fn shared(view: &View<'_>, one: &Interface<'_>, is_v6: bool) -> Option<IpAddr> {
    let networks = one.networks();
    let others = view.other?.interfaces().into_iter().filter(|other| other.is_up() && !other.is_loopback());
    let others = others.flat_map(|other| other.networks()).map(|network| network.address);
    // An address that both have is that of a network within each host.
    let others = others.filter(|other| networks.iter().any(|own| own.holds(*other) && own.address != *other));
    others.max_by_key(|other| other.is_ipv6() == is_v6)
}
