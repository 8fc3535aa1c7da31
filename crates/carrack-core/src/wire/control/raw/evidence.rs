//! What a host says of itself.

/// What evidence is gathered about.
#[derive(Clone, PartialEq, prost::Message)]
pub struct EvidenceAbout {
    /// The address that data would go to; empty for none.
    #[prost(string, tag = "1")]
    pub peer: String,
    /// A directory, as typed; empty for none.
    #[prost(bytes = "vec", tag = "2")]
    pub directory: Vec<u8>,
    /// And about so many data connections of this session.
    #[prost(uint32, tag = "3")]
    pub connections: u32,
}

/// A page of evidence.
#[derive(Clone, PartialEq, prost::Message)]
pub struct EvidencePage {
    /// At most [`crate::limits::PAGE_ENTRIES`].
    #[prost(message, repeated, tag = "1")]
    pub items: Vec<EvidenceItem>,
}

/// One text of a host.
#[derive(Clone, PartialEq, prost::Message)]
pub struct EvidenceItem {
    /// Its name.
    #[prost(string, tag = "1")]
    pub name: String,
    /// 0 found, 1 absent, 2 denied, 3 failed.
    #[prost(uint32, tag = "2")]
    pub state: u32,
    /// What was found, or why looking failed.
    #[prost(string, tag = "3")]
    pub text: String,
}
