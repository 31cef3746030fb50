//! Saved structures that a thread has verified.
//!
//! Verifying a checksum reads a whole filter, while the lookups of a batch touch a small part of it. So each thread
//! remembers the structures that it verified last by address, length and header (which contains the checksum), and
//! reads a filter once per query instead of once per batch. Not detected: memory that is freed and reused for damaged
//! bytes with the same header. Damage by storage or network is.

use std::cell::RefCell;
use std::collections::VecDeque;

use warpset_base::file::HEADER_BYTES;

/// Number of structures that a thread remembers.
const REMEMBERED: usize = 64;

#[derive(PartialEq)]
struct Checked {
    address: usize,
    len: usize,
    header: [u8; HEADER_BYTES],
}

thread_local! {
    static CHECKED: RefCell<VecDeque<Checked>> = const { RefCell::new(VecDeque::new()) };
}

/// Opens saved bytes: by `check` the first time in this thread, by `trust` later.
pub(crate) fn open<'a, T, E>(
    bytes: &'a [u8],
    check: impl FnOnce(&'a [u8]) -> Result<T, E>,
    trust: impl FnOnce(&'a [u8]) -> Result<T, E>,
) -> Result<T, E> {
    let Some(&header) = bytes.first_chunk() else {
        return check(bytes);
    };
    let this = Checked { address: bytes.as_ptr().addr(), len: bytes.len(), header };
    if CHECKED.with_borrow(|checked| checked.contains(&this)) {
        return trust(bytes);
    }
    let opened = check(bytes)?;
    CHECKED.with_borrow_mut(|checked| {
        if checked.len() == REMEMBERED {
            checked.pop_front();
        }
        checked.push_back(this);
    });
    Ok(opened)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_checked_once_per_header() {
        let mut bytes = vec![7u8; 200];
        let ask = |bytes: &[u8]| open(bytes, |_| Ok::<_, ()>("checked"), |_| Ok("trusted")).unwrap();
        assert_eq!([ask(&bytes), ask(&bytes)], ["checked", "trusted"]);
        bytes[127] = 8;
        assert_eq!([ask(&bytes), ask(&bytes)], ["checked", "trusted"]);
        assert_eq!(ask(&bytes[..199]), "checked");
        assert_eq!([ask(&bytes[..100]), ask(&bytes[..100])], ["checked", "checked"]);
        assert_eq!(open(&bytes[1..], |_| Err(()), |_| Ok(())), Err(()));
        assert_eq!(open(&bytes[1..], |_| Err(()), |_| Ok(())), Err(()));
        for i in 0..REMEMBERED {
            ask(&vec![i as u8; 200 + i]);
        }
        assert_eq!(ask(&bytes), "checked");
    }
}
