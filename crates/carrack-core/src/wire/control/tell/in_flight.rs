//! The files in flight, as fields of a message, and from there back.

use crate::limits;
use crate::report::ItemInFlight;
use crate::wire::ProtocolError;
use crate::wire::control::raw;

impl From<ItemInFlight> for raw::ItemInFlight {
    fn from(item: ItemInFlight) -> Self {
        let ItemInFlight { path, size, bytes } = item;
        Self { path, size, bytes }
    }
}

/// Few enough, with paths that are short enough. The paths are checked by whoever knows what was asked for.
pub(super) fn checked(told: raw::InFlight) -> Result<Vec<ItemInFlight>, ProtocolError> {
    let paths: usize = told.list.iter().map(|item| item.path.len()).sum();
    if told.list.len() > limits::IN_FLIGHT || paths > limits::IN_FLIGHT_PATHS_BYTES {
        let files = told.list.len();
        return Err(ProtocolError::violation(format!(
            "the peer told of {files} files in flight, with {paths} bytes of paths"
        )));
    }
    // More than all of a file cannot have landed.
    let item = |raw: raw::ItemInFlight| ItemInFlight {
        path: raw.path,
        size: raw.size,
        bytes: raw.bytes.min(raw.size.unwrap_or(limits::FILE_BYTES)),
    };
    Ok(told.list.into_iter().map(item).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::control::Tell;

    fn told(list: Vec<raw::ItemInFlight>) -> Result<Tell, ProtocolError> {
        let tell = Some(raw::Tell::InFlight(raw::InFlight { list }));
        Tell::decode(&raw::FromAgent { request: 0, tell }.to_bytes()).map(|(_, tell)| tell)
    }

    #[test]
    fn files_in_flight_are_few_with_paths_that_are_short_together() {
        let item = |length: usize| raw::ItemInFlight { path: vec![b'p'; length], size: None, bytes: 0 };
        let each = limits::IN_FLIGHT_PATHS_BYTES / limits::IN_FLIGHT;
        let most = vec![item(each); limits::IN_FLIGHT];
        assert!(matches!(told(most.clone()), Ok(Tell::InFlight(list)) if list.len() == limits::IN_FLIGHT));
        assert_eq!(told(Vec::new()), Ok(Tell::InFlight(Vec::new())));
        let too_many = [most, vec![item(0)]].concat();
        for list in [too_many, vec![item(limits::IN_FLIGHT_PATHS_BYTES + 1)], vec![item(each + each / 2); 6]] {
            let why = told(list).expect_err("refused").to_string();
            assert!(why.contains("files in flight"), "{why}");
        }
    }

    #[test]
    fn files_in_flight_have_no_more_than_their_size() {
        let item = |size, bytes| raw::ItemInFlight { path: b"f".to_vec(), size, bytes };
        let Ok(Tell::InFlight(list)) = told(vec![item(Some(5), 4), item(Some(5), u64::MAX), item(None, u64::MAX)])
        else {
            panic!("it may be said");
        };
        assert_eq!(list.iter().map(|item| item.bytes).collect::<Vec<_>>(), [4, 5, limits::FILE_BYTES]);
    }
}
