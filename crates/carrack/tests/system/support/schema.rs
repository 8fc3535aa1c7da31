//! What messages there are, read from the source of their definitions, and messages made from that with each field at
//! its extremes. A message or a field that is added to `wire` joins by itself.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use carrack_core::limits::MESSAGE_BYTES;

/// The file that defines a message, and its name there.
type Id = (PathBuf, String);

#[derive(Clone, Debug)]
enum Kind {
    Number,
    Signed,
    Bytes,
    Text,
    Message(Id),
}

#[derive(Clone, Debug)]
struct Field {
    name: String,
    tag: u32,
    kind: Kind,
    repeated: bool,
}

/// All messages of the wire.
pub struct Schema {
    messages: BTreeMap<Id, Vec<Field>>,
    numbers: Vec<u64>,
    texts: Vec<Vec<u8>>,
}

/// A message with one field changed.
pub struct Variant {
    /// The field, and what it was given.
    pub name: String,
    pub bytes: Vec<u8>,
    /// It is as long as a message may be.
    pub is_flood: bool,
}

/// Bytes that a message may take beside what fills it: the fields around it.
const ROOM: usize = 4096;

/// The path of the module that a file belongs to, without an ending: a file in the folder of a module is a part of it.
fn module_of(file: &Path) -> PathBuf {
    let parent = file.parent().unwrap_or(file);
    if parent.with_extension("rs").is_file() { parent.to_owned() } else { file.with_extension("") }
}

impl Schema {
    /// Reads the definitions. A trap is a port that nobody may be made to connect to: numbers and texts name it, too.
    pub fn read(trap: u16) -> Self {
        let wire = Path::new(env!("CARGO_MANIFEST_DIR")).join("../carrack-core/src/wire");
        let mut files = super::tree::walk(&wire);
        files.retain(|path| path.extension().is_some_and(|extension| extension == "rs"));
        let mut found = BTreeMap::new();
        let (mut aliases, mut imports) = (BTreeMap::new(), BTreeMap::new());
        for file in files {
            let text = std::fs::read_to_string(&file).unwrap();
            aliases.extend(renamed(&text).map(|(new, old)| ((file.clone(), new), old)));
            imports.extend(imported(&text).into_iter().map(|(name, module)| ((file.clone(), name), module)));
            for (name, fields) in definitions(&text) {
                let before = found.insert((file.clone(), name.clone()), fields);
                assert!(before.is_none(), "{name} is defined twice in {}", file.display());
            }
        }
        let names: Vec<Id> = found.keys().cloned().collect();
        let resolve = |file: &Path, name: &str| {
            let module = imports.get(&(file.to_owned(), name.to_owned()));
            let there = module.map(|module| (file.with_file_name(format!("{module}.rs")), name.to_owned()));
            // A name that the module only re-exports is looked for in all files.
            if let Some(there) = there.filter(|there| names.contains(there)) {
                return there;
            }
            let name = aliases.get(&(file.to_owned(), name.to_owned())).map_or(name, String::as_str);
            let here = (file.to_owned(), name.to_owned());
            if names.contains(&here) {
                return here;
            }
            // A module in several files uses its own.
            let module = module_of(file);
            let is_own = |other: &Path| other.with_extension("").starts_with(&module);
            let own = names.iter().find(|(other, there)| there == name && is_own(other));
            if let Some(own) = own {
                return own.clone();
            }
            let mut everywhere = names.iter().filter(|(_, other)| other == name);
            let first = everywhere.next().unwrap_or_else(|| panic!("no message {name}, used in {}", file.display()));
            assert!(everywhere.next().is_none(), "{name}, used in {}, is defined in several files", file.display());
            first.clone()
        };
        let fields = |id: &Id| fields_of(id, &found, &resolve);
        let (mut numbers, mut texts) = (NUMBERS.to_vec(), texts());
        numbers.push(trap.into());
        texts.push(format!("127.0.0.1:{trap}").into_bytes());
        Self { numbers, texts, messages: names.iter().map(|id| (id.clone(), fields(id))).collect() }
    }

    /// Hands out every message that `message` can be, made from `example`, an honest one: one field after the other
    /// takes each of its extremes, at any depth, and what may be repeated is repeated until the message is as
    /// long as one may be. Where the message is a choice, and the example has several, that of the changed field
    /// stands last, and counts.
    pub fn variants(&self, message: &str, example: &[u8], each: &mut dyn FnMut(Variant)) {
        self.of(self.find(message), example, 0, each);
    }

    /// A message in which all fields and choices are there, with ones and short texts; `examples` stand
    /// for the fields so named.
    pub fn plain(&self, message: &str, examples: &[(&str, Vec<u8>)]) -> Vec<u8> {
        let fields = &self.messages[self.find(message)];
        let given = |field: &Field| examples.iter().find(|(name, _)| *name == field.name).map(|(_, bytes)| bytes);
        let put = |field: &Field| given(field).map_or_else(|| self.ordinary(field, 0), |it| put_bytes(field.tag, it));
        fields.iter().flat_map(put).collect()
    }

    /// Names of the fields and choices of a message.
    pub fn fields(&self, message: &str) -> Vec<&str> {
        self.messages[self.find(message)].iter().map(|field| field.name.as_str()).collect()
    }

    fn find(&self, message: &str) -> &Id {
        let mut found = self.messages.keys().filter(|id| id.1 == message);
        let first = found.next().unwrap_or_else(|| panic!("there is no message {message}"));
        assert!(found.next().is_none(), "{message} is defined in several files");
        first
    }

    fn ordinary(&self, field: &Field, depth: usize) -> Vec<u8> {
        match &field.kind {
            Kind::Number | Kind::Signed => key(field.tag, 0, &[1]),
            Kind::Bytes | Kind::Text => put_bytes(field.tag, b"f"),
            Kind::Message(_) if depth > DEPTH => Vec::new(),
            Kind::Message(id) => {
                let inner = self.messages[id].iter().flat_map(|field| self.ordinary(field, depth + 1));
                put_bytes(field.tag, &inner.collect::<Vec<u8>>())
            }
        }
    }

    fn of(&self, id: &Id, example: &[u8], depth: usize, each: &mut dyn FnMut(Variant)) {
        let given = parse(example);
        for field in &self.messages[id] {
            let mine = given.iter().find(|(tag, _)| *tag == field.tag).map(|(_, value)| value.as_slice());
            let others = given.iter().filter(|(tag, _)| *tag != field.tag);
            let others: Vec<u8> = others.flat_map(|(tag, value)| put(*tag, value)).collect();
            self.contents(field, mine, depth, &mut |what, content, is_flood| {
                let bytes = [others.as_slice(), &content].concat();
                each(Variant { name: format!("{}.{} {what}", id.1, field.name), bytes, is_flood });
            });
        }
    }

    /// What one field may be: a name for it; the field encoded, as often as it is there; whether
    /// that is as often as can be.
    fn contents(&self, field: &Field, example: Option<&[u8]>, depth: usize, each: &mut dyn FnMut(&str, Vec<u8>, bool)) {
        let mut bytes = |value: &[u8]| {
            let shown: String = String::from_utf8_lossy(&value[..value.len().min(24)]).escape_debug().collect();
            each(&format!("= {} bytes {shown}", value.len()), put_bytes(field.tag, value), false);
        };
        match &field.kind {
            Kind::Bytes => self.texts.iter().chain(&raw()).for_each(|value| bytes(value)),
            Kind::Text => self.texts.iter().chain(&[vec![0xff, 0xfe]]).for_each(|value| bytes(value)),
            Kind::Number => {
                self.numbers
                    .iter()
                    .for_each(|&value| each(&format!("= {value}"), key(field.tag, 0, &varint(value)), false));
            }
            Kind::Signed => SIGNED.iter().for_each(|&value| {
                let zigzag = (value << 1) ^ (value >> 63);
                each(&format!("= {value}"), key(field.tag, 0, &varint(zigzag as u64)), false);
            }),
            Kind::Message(_) if depth > DEPTH => {}
            Kind::Message(id) => {
                let example = example.map(|value| value[1 + varint_length(&value[1..])..].to_vec()).unwrap_or_default();
                each("empty", put_bytes(field.tag, &[]), false);
                self.of(id, &example, depth + 1, &mut |inner| {
                    each(&inner.name, put_bytes(field.tag, &inner.bytes), inner.is_flood);
                });
            }
        }
        if field.repeated {
            let honest = example.map(|value| put(field.tag, value));
            let least = match field.kind {
                Kind::Number | Kind::Signed => key(field.tag, 0, &[0]),
                _ => put_bytes(field.tag, &[]),
            };
            for one in [Some(least), honest].into_iter().flatten() {
                let times = (MESSAGE_BYTES - ROOM) / one.len();
                each(&format!("{times} times"), one.repeat(times), true);
            }
        }
    }
}

/// Messages in messages.
const DEPTH: usize = 4;
const NUMBERS: &[u64] = &[0, 2, 9, u32::MAX as u64, i64::MAX as u64, u64::MAX];
const SIGNED: &[i64] = &[-1, i64::MIN, i64::MAX];

/// Texts and paths that do harm where they are believed.
fn texts() -> Vec<Vec<u8>> {
    let short = [&b""[..], b"../outside/canary", b"a/../../x", b"a\0b"];
    let mut all: Vec<Vec<u8>> = short.iter().map(|text| text.to_vec()).collect();
    all.push("\x1b[2J\r\n\u{202e}\u{200b}\u{feff}\u{e0041}".as_bytes().to_vec());
    all.push(b"n/".repeat(40_000));
    all.push(vec![b'n'; MESSAGE_BYTES - ROOM]);
    all
}

/// Bytes that are no text: digests, keys and pins of the right lengths and of others.
fn raw() -> Vec<Vec<u8>> {
    [15, 16, 17, 32, 33, 40].map(|length| vec![0xff; length]).to_vec()
}

/// `A as B` in a file.
fn renamed(text: &str) -> impl Iterator<Item = (String, String)> + '_ {
    let word = |text: &str| text.trim_matches(|c: char| !c.is_alphanumeric() && c != '_').to_owned();
    let uses = text.lines().filter(|line| line.contains(" as ") && !line.trim_start().starts_with("//"));
    uses.flat_map(move |line| {
        let words: Vec<&str> = line.split([' ', '{', '}', ',', ';', ':']).filter(|word| !word.is_empty()).collect();
        let pairs: Vec<_> =
            words.windows(3).filter(|three| three[1] == "as").map(|three| (word(three[2]), word(three[0]))).collect();
        pairs
    })
}

/// `use super::module::{names}`, or of a module below `use module::{names}`: the names, and the module of each.
fn imported(text: &str) -> Vec<(String, String)> {
    let statements = text.split(';').filter_map(|statement| Some(statement.rsplit_once("use ")?.1));
    let statements = statements.map(|path| path.strip_prefix("super::").unwrap_or(path));
    let lists = statements.filter_map(|path| path.split_once("::{").filter(|(module, _)| !module.contains([':', '{'])));
    lists
        .flat_map(|(module, names)| {
            let names = names.trim_end_matches('}').split(',').map(str::trim);
            names.map(move |name| (name.to_owned(), module.to_owned()))
        })
        .collect()
}

/// A field as it is written: name, attribute, type.
type Written = (String, String, String);

/// Messages and choices of a file, with their fields.
fn definitions(text: &str) -> Vec<(String, Vec<Written>)> {
    let mut all: Vec<(String, Vec<Written>)> = Vec::new();
    let (mut derives, mut inside, mut attribute) = (false, None::<String>, String::new());
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let indent = &line[..line.len() - line.trim_start().len()];
        let mut line = line.trim().to_owned();
        while line.starts_with("#[") && !line.ends_with(']') {
            line.push_str(lines.next().unwrap().trim());
        }
        if let Some(end) = &inside {
            if line.starts_with("#[prost(") {
                attribute = line;
            } else if line == "}" && indent == end {
                inside = None;
            } else if line.starts_with('$') {
                // What a macro makes of its table, which comes below.
            } else if !line.is_empty() && !line.starts_with("//") && !line.starts_with('#') {
                // A line of a table: name, type, kind and tag.
                if let Some((kind, tag)) = line.split_once(" = ").and_then(|(_, numbered)| numbered.split_once(' ')) {
                    attribute = format!("#[prost({kind}, tag = {})]", tag.trim_end_matches(','));
                }
                let line = line.trim_start_matches("pub ").trim_end_matches(',');
                let (name, kind) = line.split_once(':').or_else(|| line.trim_end_matches(')').split_once('(')).unwrap();
                let fields = &mut all.last_mut().unwrap().1;
                fields.push((name.trim().to_owned(), std::mem::take(&mut attribute), kind.trim().to_owned()));
            }
        } else if line.starts_with("#[derive(") {
            derives = line.contains("prost::");
        } else if line == "options! {" {
            inside = Some(indent.to_owned());
        } else if derives && (line.starts_with("pub struct ") || line.starts_with("pub enum ")) {
            derives = false;
            all.push((line.split([' ', '{']).nth(2).unwrap().to_owned(), Vec::new()));
            inside = (!line.ends_with('}')).then(|| indent.to_owned());
        }
    }
    all
}

/// The fields of a message; those of a choice are its own.
fn fields_of(id: &Id, found: &BTreeMap<Id, Vec<Written>>, resolve: &dyn Fn(&Path, &str) -> Id) -> Vec<Field> {
    let mut fields = Vec::new();
    for (name, attribute, written) in &found[id] {
        let inner = written.rsplit(['<', ':']).next().unwrap().trim_end_matches('>').to_owned();
        if attribute.contains("oneof =") {
            fields.extend(fields_of(&resolve(&id.0, &inner), found, resolve));
            continue;
        }
        let words: Vec<&str> = attribute.trim_start_matches("#[prost(").split([',', ')', '"', '=', ' ']).collect();
        let tag = words.iter().find_map(|word| word.parse().ok());
        let tag = tag.unwrap_or_else(|| panic!("{}.{name} has no tag: {attribute}", id.1));
        let kind = match words[0] {
            "uint32" | "uint64" | "bool" | "int32" | "int64" => Kind::Number,
            "sint32" | "sint64" => Kind::Signed,
            "bytes" => Kind::Bytes,
            "string" => Kind::Text,
            "message" => Kind::Message(resolve(&id.0, &inner)),
            other => panic!("{}.{name} is of the unknown kind {other}", id.1),
        };
        fields.push(Field { name: name.clone(), tag, kind, repeated: words.contains(&"repeated") });
    }
    fields
}

fn varint(mut value: u64) -> Vec<u8> {
    let mut out = Vec::new();
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
    out
}

fn varint_length(bytes: &[u8]) -> usize {
    bytes.iter().position(|byte| byte & 0x80 == 0).map_or(bytes.len(), |last| last + 1)
}

fn key(tag: u32, kind: u64, value: &[u8]) -> Vec<u8> {
    [varint(u64::from(tag) << 3 | kind), value.to_vec()].concat()
}

fn put_bytes(tag: u32, value: &[u8]) -> Vec<u8> {
    [key(tag, 2, &varint(value.len() as u64)), value.to_vec()].concat()
}

/// The fields of an encoded message: tag with its kind, and what stands behind it: a number, or length and bytes.
fn parse(mut bytes: &[u8]) -> Vec<(u32, Vec<u8>)> {
    let mut all = Vec::new();
    let number = |bytes: &mut &[u8]| {
        let (mine, rest) = bytes.split_at(varint_length(bytes));
        *bytes = rest;
        mine.iter().rev().fold(0_u64, |value, byte| value << 7 | u64::from(byte & 0x7f))
    };
    while !bytes.is_empty() {
        let head = number(&mut bytes);
        let start = bytes;
        let value = number(&mut bytes);
        let length = if head & 7 == 2 { value as usize } else { 0 };
        bytes = &bytes[length..];
        all.push((head as u32, start[..start.len() - bytes.len()].to_vec()));
    }
    // Fields are told apart by their tags alone; the kind goes back on with them.
    all.into_iter().map(|(head, value)| (head >> 3, [vec![(head & 7) as u8], value].concat())).collect()
}

/// A field as [`parse`] gave it.
fn put(tag: u32, value: &[u8]) -> Vec<u8> {
    key(tag, u64::from(value[0]), &value[1..])
}
