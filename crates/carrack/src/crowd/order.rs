//! What a host's part of a crowd has to do, and the line that takes it there.

use std::net::IpAddr;
use std::time::Duration;

use carrack_core::credential::Token;
use carrack_core::location::NodeAddress;
use carrack_core::request::LinkKind;
use carrack_core::words;
use data_encoding::{BASE64, HEXLOWER};
use serde_json::{Value, json};

words! {
    /// Which way a client's files go.
    pub enum ClientWay {
        Put "put" "clients send files to the server"
        Get "get" "clients fetch files from the server"
    }
}

/// One client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Client {
    /// Its number in the crowd, from 1 on.
    pub number: u32,
    /// Which way its files go.
    pub way: ClientWay,
}

/// How files are carried.
#[derive(Clone, Debug, PartialEq)]
pub enum Carrier {
    /// By copies of this program's engine, to a directory of a node.
    Carrack {
        /// The node; its key stands in the address.
        node: NodeAddress,
        /// The directory below its root that the clients use.
        directory: Vec<u8>,
        /// What the node is shown.
        token: Option<Token>,
        /// Data connections of each copy; as many as a copy chooses where none is said.
        streams: Option<u16>,
        /// The one kind of link that may be used; any where none is said.
        link: Option<LinkKind>,
    },
    /// By another program.
    Program {
        /// A line of shell for each file that is sent.
        put: Option<String>,
        /// The same for each that is fetched.
        get: Option<String>,
        /// What `{node}` stands for in them.
        node: String,
    },
}

/// What a part has to do.
#[derive(Clone, Debug, PartialEq)]
pub struct LoadOrder {
    /// Its clients.
    pub clients: Vec<Client>,
    /// Files of each client, one after the other.
    pub files: u32,
    /// Bytes of each file.
    pub size: u64,
    /// Different files of the host that its clients send, in turns.
    pub sources: u32,
    /// Different files of the server that all clients fetch, in turns.
    pub set: u32,
    /// What the names of all files at the server begin with.
    pub prefix: String,
    /// How they are carried.
    pub carrier: Carrier,
    /// Attempts of each file behind the first.
    pub retries: u32,
    /// From the common start to giving up.
    pub timeout: Duration,
    /// The directory in which the part makes its own.
    pub scratch: Vec<u8>,
    /// How long a client may take to connect.
    pub connect_timeout: Duration,
    /// The address of the host that connections leave from; the system's choice where none is said.
    pub local_address: Option<IpAddr>,
}

/// More clients than this no host carries.
pub const CLIENTS_MAX: u32 = 10_000;
/// Files of each client.
pub const FILES_MAX: u32 = 100_000;
/// Different files that are sent, or fetched.
pub const SOURCES_MAX: u32 = 256;

/// What a file is called at the server that a client sends.
pub fn put_name(prefix: &str, client: u32, file: u32) -> String {
    format!("{prefix}put-{client:05}-{file:06}")
}

/// What the files are called that clients fetch, from 0 on.
pub fn set_name(prefix: &str, number: u32) -> String {
    format!("{prefix}get-{number:04}")
}

impl LoadOrder {
    /// Which of the host's files a client sends, by the client's place among those of the part.
    pub fn source_of(&self, place: usize, file: u32) -> u32 {
        turn(place as u64, self.files, file, self.sources)
    }

    /// Which of the server's files a client fetches.
    pub fn set_of(&self, client: u32, file: u32) -> u32 {
        turn(u64::from(client), self.files, file, self.set)
    }

    /// The line.
    pub fn to_json(&self) -> Value {
        let clients: Vec<Value> = self.clients.iter().map(|one| json!([one.number, one.way.name()])).collect();
        json!({
            "clients": clients,
            "files": self.files,
            "size": self.size,
            "sources": self.sources,
            "set": self.set,
            "prefix": self.prefix,
            "carrier": carrier(&self.carrier),
            "retries": self.retries,
            "timeout_ms": millis(self.timeout),
            "scratch_b64": BASE64.encode(&self.scratch),
            "connect_timeout_ms": millis(self.connect_timeout),
            "local_address": self.local_address.map(|address| address.to_string()),
        })
    }

    /// From its line; `None` if it is none.
    pub fn from_json(value: &Value) -> Option<Self> {
        let number = |name: &str, most: u32| {
            let number = u32::try_from(value[name].as_u64()?).ok()?;
            (number <= most).then_some(number)
        };
        let client =
            |one: &Value| Some(Client { number: u32::try_from(one[0].as_u64()?).ok()?, way: way(one[1].as_str()?)? });
        let clients: Option<Vec<Client>> = value["clients"].as_array()?.iter().map(client).collect();
        Some(Self {
            clients: clients.filter(|all| !all.is_empty() && all.len() <= CLIENTS_MAX as usize)?,
            files: number("files", FILES_MAX)?,
            size: value["size"].as_u64()?,
            sources: number("sources", SOURCES_MAX)?,
            set: number("set", SOURCES_MAX)?,
            prefix: value["prefix"].as_str()?.to_owned(),
            carrier: carrier_from(&value["carrier"])?,
            retries: number("retries", u32::MAX)?,
            timeout: Duration::from_millis(value["timeout_ms"].as_u64()?),
            scratch: BASE64.decode(value["scratch_b64"].as_str()?.as_bytes()).ok()?,
            connect_timeout: Duration::from_millis(value["connect_timeout_ms"].as_u64()?),
            local_address: value["local_address"].as_str().and_then(|address| address.parse().ok()),
        })
    }
}

/// Files in turns: neighbours do not begin with the same one.
fn turn(client: u64, files: u32, file: u32, all: u32) -> u32 {
    let at = client.wrapping_mul(u64::from(files)).wrapping_add(u64::from(file));
    u32::try_from(at % u64::from(all.max(1))).unwrap_or(0)
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// A way by its word.
pub fn way(word: &str) -> Option<ClientWay> {
    ClientWay::ALL.iter().copied().find(|way| way.name() == word)
}

fn carrier(carrier: &Carrier) -> Value {
    match carrier {
        Carrier::Carrack { node, directory, token, streams, link } => json!({
            "by": "carrack",
            "host": node.host,
            "port": node.port,
            "pin": node.pin.map(|pin| HEXLOWER.encode(&pin)),
            "directory_b64": BASE64.encode(directory),
            "token": token.as_ref().map(Token::reveal),
            "streams": streams,
            "link": link.map(LinkKind::name),
        }),
        Carrier::Program { put, get, node } => json!({ "by": "program", "put": put, "get": get, "node": node }),
    }
}

fn carrier_from(value: &Value) -> Option<Carrier> {
    let text = |name: &str| value[name].as_str().map(str::to_owned);
    match value["by"].as_str()? {
        "program" => Some(Carrier::Program { put: text("put"), get: text("get"), node: text("node")? }),
        "carrack" => {
            let pin = |text: String| HEXLOWER.decode(text.as_bytes()).ok()?.try_into().ok();
            let link = |word: String| LinkKind::BETWEEN_HOSTS.iter().copied().find(|link| link.name() == word);
            Some(Carrier::Carrack {
                node: NodeAddress {
                    host: text("host")?,
                    port: u16::try_from(value["port"].as_u64()?).ok()?,
                    pin: text("pin").and_then(pin),
                },
                directory: BASE64.decode(text("directory_b64")?.as_bytes()).ok()?,
                token: text("token").and_then(|token| Token::new(token.as_bytes()).ok()),
                streams: value["streams"].as_u64().and_then(|streams| u16::try_from(streams).ok()),
                link: text("link").and_then(link),
            })
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(carrier: Carrier) -> LoadOrder {
        LoadOrder {
            clients: vec![Client { number: 7, way: ClientWay::Put }, Client { number: 9, way: ClientWay::Get }],
            files: 3,
            size: 5,
            sources: 4,
            set: 2,
            prefix: "load-".to_owned(),
            carrier,
            retries: 1,
            timeout: Duration::from_millis(1500),
            scratch: b"/s\xff".to_vec(),
            connect_timeout: Duration::from_secs(60),
            local_address: "127.0.0.7".parse().ok(),
        }
    }

    #[test]
    fn orders_come_back_from_their_lines() {
        let node = NodeAddress { host: "::1".to_owned(), port: 7420, pin: Some([7; 32]) };
        let carriers = [
            Carrier::Carrack {
                node,
                directory: b"d\xff".to_vec(),
                token: Token::new(b"secret").ok(),
                streams: Some(2),
                link: Some(LinkKind::Tunnel),
            },
            Carrier::Program { put: Some("cp {local} {node}/{name}".to_owned()), get: None, node: "n".to_owned() },
        ];
        for carrier in carriers {
            let order = order(carrier);
            let line = order.to_json().to_string();
            assert_eq!(LoadOrder::from_json(&serde_json::from_str(&line).expect("JSON")), Some(order));
        }
        assert_eq!(LoadOrder::from_json(&json!({})), None);
    }

    #[test]
    fn files_are_taken_in_turns() {
        let order = order(Carrier::Program { put: None, get: None, node: String::new() });
        let sources: Vec<u32> = (0..2)
            .flat_map(|place| (0..3).map(move |file| (place, file)))
            .map(|(p, f)| order.source_of(p, f))
            .collect();
        assert_eq!(sources, [0, 1, 2, 3, 0, 1]);
        assert!((0..3).all(|file| order.set_of(7, file) < 2));
        assert_eq!((put_name("a-", 7, 2), set_name("", 3)), ("a-put-00007-000002".to_owned(), "get-0003".to_owned()));
    }
}
