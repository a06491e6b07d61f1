//! The UID of a system: a random number for each start, which tells a system from one that had its name before.

use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::num::NonZeroU64;
use std::time::SystemTime;

/// The UID of one start of a system.
///
/// It is an identity and no secret: two starts have different UIDs but for a chance of one in 2^64. The actors of a start have
/// uids of their own, so the pair names an incarnation of an actor for good.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct SystemUid(NonZeroU64);

impl SystemUid {
    /// Returns a UID that no other start has.
    pub(crate) fn fresh() -> Self {
        loop {
            // The keys of the hasher are random numbers of the operating system, and differ from call to call. The time and
            // the process are for systems whose random numbers are the same at each start.
            let moment = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
            let number = RandomState::new().hash_one((moment, std::process::id()));
            if let Some(uid) = Self::new(number) {
                return uid;
            }
        }
    }

    /// The UID of this number, which a frame shows; 0 is none.
    pub(crate) fn new(number: u64) -> Option<Self> {
        NonZeroU64::new(number).map(Self)
    }

    pub(crate) fn get(self) -> u64 {
        self.0.get()
    }
}

impl fmt::Display for SystemUid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.get())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn each_start_has_a_uid_of_its_own() {
        let uids: HashSet<SystemUid> = (0..10_000).map(|_| SystemUid::fresh()).collect();
        assert_eq!(uids.len(), 10_000);
        // Each bit is set in some of them and unset in others.
        let all = |fold: fn(u64, u64) -> u64| uids.iter().map(|uid| uid.get()).reduce(fold);
        assert_eq!((all(|a, b| a | b), all(|a, b| a & b)), (Some(u64::MAX), Some(0)));
    }

    #[test]
    fn zero_is_no_uid_and_others_are_shown_with_all_digits() {
        assert_eq!(SystemUid::new(0), None);
        let uid = SystemUid::new(0xabc).expect("it is not 0");
        assert_eq!((uid.get(), uid.to_string().as_str()), (0xabc, "0000000000000abc"));
    }
}
