//! The inside, for this project's own tests and measurements. Nothing here is promised to anybody.

#![allow(missing_docs)]

pub mod agent {
    pub use crate::agent::{Agent, DataPort, Environment, NodeToken, greet};
}

pub mod data {
    pub mod dial {
        pub use crate::data::dial::*;
        pub use crate::net::connect::Allow;
    }
    pub mod hasher {
        pub use crate::data::hasher::*;
    }
    pub mod hello {
        pub use crate::data::hello::*;
    }
    pub mod mac {
        pub use crate::data::mac::*;
    }
    pub mod sessions {
        pub use crate::data::sessions::*;
    }
    pub mod stream {
        pub use crate::data::stream::*;
    }
}

pub mod error {
    pub use crate::error::*;
}

pub mod net {
    pub mod dial_rule {
        pub use crate::net::dial_rule::*;
    }
    pub mod mux {
        pub use crate::net::mux::*;
    }
    pub mod opening {
        pub use crate::net::opening::*;
    }
    pub mod socket {
        pub use crate::net::socket::*;
    }
    pub mod tls {
        pub use crate::net::tls::*;
    }
    pub mod tls_duplex {
        pub use crate::net::tls_duplex::*;
    }
}

pub mod storage {
    pub mod posix {
        pub use crate::storage::posix::store::Posix;
    }
    pub mod synthetic {
        pub use crate::storage::synthetic::*;
    }
}
