//! One shard's keys: what a cache actor owns, and what it does for each request.
//!
//! Pure and single-threaded. Time is an argument (`now_ms`, milliseconds since the Unix epoch, or
//! whatever clock the requests' deadlines were made with); it must not run backwards by much.
//!
//! # Expiry
//! A key whose deadline is not after `now` is gone for everybody: each operation looks at its key's
//! deadline first. What nobody asks for is removed by [`Keyspace::sweep`], which a timer calls. The
//! deadlines are kept in order, so that a sweep touches dead keys only and does a bounded amount of work;
//! Redis samples instead, and may keep dead keys for long.
//!
//! # Resizing
//! A key moves between shards as a `(Bytes, Entry)` pair, and its deadline inside the entry moves with
//! it: [`Keyspace::drain_where`], [`Keyspace::take`], [`Keyspace::adopt`].
//!
//! # Hashing
//! XXH3 with a seed drawn at random for each keyspace. XXH3 is fast, but no cryptographic hash: the seed
//! keeps a list of colliding keys made in advance from working, not an attacker who can measure replies
//! for long enough to learn it. A cache that faces such clients wants SipHash (std's default) here.
//!
//! # Not as Redis 7.0 does it
//! - DBSIZE does not count keys that have expired and are not removed yet.
//! - KEYS answers in no particular order, as there, but in another one.
//! - All values are strings, so there is no `WRONGTYPE`.

use std::collections::{BTreeSet, HashMap, hash_map};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::num::NonZeroU64;

use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::bytes::Bytes;
use crate::command::{
    AllRequest, ExpireCondition, KeyRequest, ManyRequest, Operation, SetCondition, SetOptions,
};
use crate::glob::Glob;
use crate::resp::{
    bulk_len, format_integer, parse_integer, put_bulk, put_error, put_integer, put_null, put_simple,
};

/// The longest value APPEND makes, in bytes (Redis: `proto-max-bulk-len`).
const VALUE_LEN_MAX: usize = 512 << 20;

/// The keys of one shard.
#[derive(Debug)]
pub struct Keyspace {
    entries: HashMap<Bytes, Entry, Seed>,
    /// The deadline and key of every entry that has one, and of no other.
    deadlines: BTreeSet<(NonZeroU64, Bytes)>,
}

/// A value with its deadline, as it moves between shards.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    value: Bytes,
    deadline: Option<NonZeroU64>,
}

/// A shard's answer to a [`KeyRequest`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    Ok,
    Null,
    Integer(i64),
    Bulk(Bytes),
    Simple(&'static str),
    Error(OperationError),
}

/// A shard's share of an answer that [`RouteeReplyCollector`](crate::command::RouteeReplyCollector) puts together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PartReply {
    /// DEL, UNLINK, EXISTS: how many of this many keys were there.
    Count { keys: usize, found: usize },
    /// MGET: for each key its position in the request and its value.
    Values(Vec<(u32, Option<Bytes>)>),
    /// MSET: so many keys are stored.
    Stored { keys: usize },
    /// DBSIZE.
    Size(usize),
    /// KEYS.
    Keys(Vec<Bytes>),
    /// KEYS, where the reply would be longer than it may be.
    TooLong,
    /// FLUSHALL.
    Cleared,
}

/// Why an operation cannot be carried out on the value that is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum OperationError {
    NotAnInteger,
    Overflow,
    TooLong,
}

impl Keyspace {
    /// An empty shard.
    pub fn new() -> Keyspace {
        Keyspace { entries: HashMap::with_hasher(Seed::random()), deadlines: BTreeSet::new() }
    }

    /// Carries out `request` and says what to answer.
    pub fn apply(&mut self, now_ms: u64, request: KeyRequest) -> Reply {
        let KeyRequest { key, operation } = request;
        self.expire(now_ms, &key);
        match operation {
            Operation::Get => {
                self.entries.get(&key).map_or(Reply::Null, |entry| Reply::Bulk(entry.value.clone()))
            }
            Operation::Set { value, options } => self.set(now_ms, key, value, options),
            Operation::SetIfAbsent { value } => {
                let absent = !self.entries.contains_key(&key);
                if absent {
                    self.store(key, value);
                }
                Reply::Integer(absent.into())
            }
            Operation::Delete => Reply::Integer(self.take(&key).is_some().into()),
            Operation::Exists => Reply::Integer(self.entries.contains_key(&key).into()),
            Operation::Expire { deadline_ms, condition } => {
                Reply::Integer(self.expire_at(now_ms, key, deadline_ms, condition).into())
            }
            Operation::TimeToLive { in_seconds } => Reply::Integer(match self.entries.get(&key) {
                None => -2,
                Some(Entry { deadline: None, .. }) => -1,
                Some(Entry { deadline: Some(deadline), .. }) => {
                    let left_ms = deadline.get().saturating_sub(now_ms) as i64;
                    if in_seconds { left_ms.saturating_add(500) / 1000 } else { left_ms }
                }
            }),
            Operation::Persist => {
                let removed = self.entries.get_mut(&key).and_then(|entry| entry.deadline.take());
                if let Some(deadline) = removed {
                    self.deadlines.remove(&(deadline, key));
                }
                Reply::Integer(removed.is_some().into())
            }
            Operation::Add(amount) => self.add(key, amount).map_or_else(Reply::Error, Reply::Integer),
            Operation::Append { tail } => self.append(key, &tail).map_or_else(Reply::Error, Reply::Integer),
            Operation::Length => {
                Reply::Integer(self.entries.get(&key).map_or(0, |entry| entry.value.len() as i64))
            }
            Operation::Type => Reply::Simple(if self.entries.contains_key(&key) { "string" } else { "none" }),
        }
    }

    /// Carries out this shard's part of a request for many keys, all at once: no other request of the
    /// shard comes in between.
    pub fn apply_many(&mut self, now_ms: u64, request: ManyRequest) -> PartReply {
        match request {
            ManyRequest::Delete(keys) => {
                let found = keys.iter().filter(|key| {
                    self.expire(now_ms, key);
                    self.take(key).is_some()
                });
                PartReply::Count { found: found.count(), keys: keys.len() }
            }
            ManyRequest::Exists(keys) => {
                let found = keys.iter().filter(|key| self.get(now_ms, key).is_some());
                PartReply::Count { found: found.count(), keys: keys.len() }
            }
            ManyRequest::Get(keys) => PartReply::Values(
                keys.into_iter()
                    .map(|(position, key)| {
                        (position, self.get(now_ms, &key).map(|entry| entry.value.clone()))
                    })
                    .collect(),
            ),
            ManyRequest::Set(pairs) => {
                let keys = pairs.len();
                pairs.into_iter().for_each(|(key, value)| self.store(key, value));
                PartReply::Stored { keys }
            }
        }
    }

    /// Carries out a request that concerns all shards, on this one. A reply may have `reply_max` bytes.
    pub fn apply_all(&mut self, now_ms: u64, request: &AllRequest, reply_max: usize) -> PartReply {
        match request {
            AllRequest::Size => PartReply::Size(self.len(now_ms)),
            AllRequest::Keys(pattern) => {
                let keys = self.keys(now_ms, &Glob::new(pattern), reply_max);
                keys.map_or(PartReply::TooLong, PartReply::Keys)
            }
            AllRequest::Clear => {
                self.clear();
                PartReply::Cleared
            }
        }
    }

    /// How many keys there are. O(keys that have expired and were not swept yet).
    pub fn len(&self, now_ms: u64) -> usize {
        let expired = self.deadlines.iter().take_while(|(deadline, _)| deadline.get() <= now_ms).count();
        self.entries.len() - expired
    }

    /// The keys that match, in no particular order; `None` if the reply would be longer than `reply_max`.
    pub fn keys(&self, now_ms: u64, glob: &Glob, reply_max: usize) -> Option<Vec<Bytes>> {
        let live = self.entries.iter().filter(|(key, entry)| !entry.expired(now_ms) && glob.matches(key));
        let mut left = reply_max;
        live.map(|(key, _)| {
            left = left.checked_sub(bulk_len(key.len()))?;
            Some(key.clone())
        })
        .collect()
    }

    /// Removes all keys.
    pub fn clear(&mut self) {
        self.entries.clear();
        self.deadlines.clear();
        // The memory too: who flushes a cache wants it back.
        self.entries.shrink_to_fit();
    }

    /// Removes up to `budget` expired keys, the longest expired first, and returns how many. If that is
    /// `budget`, more may be left.
    pub fn sweep(&mut self, now_ms: u64, budget: usize) -> usize {
        for removed in 0..budget {
            match self.deadlines.first() {
                Some((deadline, _)) if deadline.get() <= now_ms => {}
                _ => return removed,
            }
            if let Some((_, key)) = self.deadlines.pop_first() {
                self.entries.remove(&key);
            }
        }
        budget
    }

    /// When the next key expires, in the clock of `now_ms`; for a timer that wakes no sooner.
    pub fn next_deadline_ms(&self) -> Option<u64> {
        self.deadlines.first().map(|(deadline, _)| deadline.get())
    }

    /// Takes out all keys that `moves` picks, with their deadlines. O(all keys).
    pub fn drain_where(
        &mut self,
        mut moves: impl FnMut(&[u8]) -> bool,
    ) -> impl Iterator<Item = (Bytes, Entry)> {
        let keys: Vec<Bytes> = self.entries.keys().filter(|key| moves(key)).cloned().collect();
        keys.into_iter().filter_map(|key| self.take(&key).map(|entry| (key, entry)))
    }

    /// Takes out `key`, with its deadline; also if that has passed.
    pub fn take(&mut self, key: &[u8]) -> Option<Entry> {
        let (key, entry) = self.entries.remove_entry(key)?;
        if let Some(deadline) = entry.deadline {
            self.deadlines.remove(&(deadline, key));
        }
        Some(entry)
    }

    /// Puts in an entry that another shard gave up, and returns the one it replaces.
    pub fn adopt(&mut self, key: Bytes, entry: Entry) -> Option<Entry> {
        let replaced = self.take(&key);
        if let Some(deadline) = entry.deadline {
            self.deadlines.insert((deadline, key.clone()));
        }
        self.entries.insert(key, entry);
        replaced
    }

    fn get(&mut self, now_ms: u64, key: &[u8]) -> Option<&Entry> {
        self.expire(now_ms, key);
        self.entries.get(key)
    }

    /// Removes `key` if it has expired. One look at the earliest deadline while nothing has.
    fn expire(&mut self, now_ms: u64, key: &[u8]) {
        let some_expired = self.deadlines.first().is_some_and(|(deadline, _)| deadline.get() <= now_ms);
        if some_expired && self.entries.get(key).is_some_and(|entry| entry.expired(now_ms)) {
            self.take(key);
        }
    }

    fn set(&mut self, now_ms: u64, key: Bytes, value: Bytes, options: SetOptions) -> Reply {
        let present = self.entries.get(&key);
        let old = match present {
            Some(entry) if options.get => Some(entry.value.clone()),
            _ => None,
        };
        let wanted = match options.condition {
            SetCondition::Always => true,
            SetCondition::IfAbsent => present.is_none(),
            SetCondition::IfPresent => present.is_some(),
        };
        if wanted {
            if options.keep_ttl {
                self.replace_value(key, value);
            } else if let Some(deadline) = options.deadline_ms {
                self.adopt(key.clone(), Entry { value, deadline: Some(deadline) });
                // EXAT and PXAT may name a time that has passed.
                self.expire(now_ms, &key);
            } else {
                self.store(key, value);
            }
        }
        match old {
            Some(old) => Reply::Bulk(old),
            None if options.get || !wanted => Reply::Null,
            None => Reply::Ok,
        }
    }

    /// Stores a value without a deadline.
    fn store(&mut self, key: Bytes, value: Bytes) {
        match self.entries.entry(key) {
            hash_map::Entry::Occupied(mut occupied) => {
                let old = occupied.insert(Entry { value, deadline: None });
                if let Some(deadline) = old.deadline {
                    self.deadlines.remove(&(deadline, occupied.key().clone()));
                }
            }
            hash_map::Entry::Vacant(vacant) => {
                vacant.insert(Entry { value, deadline: None });
            }
        }
    }

    /// Stores a value and leaves the deadline as it is.
    fn replace_value(&mut self, key: Bytes, value: Bytes) {
        self.entries.entry(key).or_insert_with(Entry::empty).value = value;
    }

    fn expire_at(&mut self, now_ms: u64, key: Bytes, deadline_ms: i64, condition: ExpireCondition) -> bool {
        let Some(entry) = self.entries.get_mut(&key) else { return false };
        let old = entry.deadline;
        // No deadline is later than any.
        let later = old.is_some_and(|old| deadline_ms > old.get() as i64);
        let earlier = old.is_none_or(|old| deadline_ms < old.get() as i64);
        if condition.if_none && old.is_some()
            || condition.if_some && old.is_none()
            || condition.if_later && !later
            || condition.if_earlier && !earlier
        {
            return false;
        }
        match u64::try_from(deadline_ms).ok().and_then(NonZeroU64::new).filter(|new| new.get() > now_ms) {
            None => {
                self.take(&key);
            }
            Some(new) => {
                entry.deadline = Some(new);
                if let Some(old) = old {
                    self.deadlines.remove(&(old, key.clone()));
                }
                self.deadlines.insert((new, key));
            }
        }
        true
    }

    fn add(&mut self, key: Bytes, amount: i64) -> Result<i64, OperationError> {
        let old = match self.entries.get(&key) {
            Some(entry) => parse_integer(&entry.value).ok_or(OperationError::NotAnInteger)?,
            None => 0,
        };
        let new = old.checked_add(amount).ok_or(OperationError::Overflow)?;
        self.replace_value(key, Bytes::copy_from(format_integer(new, &mut [0; 20])));
        Ok(new)
    }

    fn append(&mut self, key: Bytes, tail: &[u8]) -> Result<i64, OperationError> {
        let entry = self.entries.entry(key).or_insert_with(Entry::empty);
        let len = entry.value.len() + tail.len();
        if len > VALUE_LEN_MAX {
            return Err(OperationError::TooLong);
        }
        entry.value.append(tail);
        Ok(len as i64)
    }
}

impl Entry {
    fn empty() -> Entry {
        Entry { value: Bytes::copy_from(b""), deadline: None }
    }

    /// The value.
    pub fn value(&self) -> &[u8] {
        &self.value
    }

    /// When it expires, if ever, in the clock of `now_ms`.
    pub fn deadline_ms(&self) -> Option<u64> {
        self.deadline.map(NonZeroU64::get)
    }

    fn expired(&self, now_ms: u64) -> bool {
        self.deadline.is_some_and(|deadline| deadline.get() <= now_ms)
    }
}

impl Reply {
    /// How many bytes [`put`](Self::put) appends at most.
    pub fn len(&self) -> usize {
        match self {
            Reply::Bulk(bytes) => bulk_len(bytes.len()),
            Reply::Ok | Reply::Null | Reply::Integer(_) | Reply::Simple(_) | Reply::Error(_) => 128,
        }
    }

    /// Appends the reply.
    pub fn put(&self, out: &mut Vec<u8>) {
        match self {
            Reply::Ok => put_simple(out, "OK"),
            Reply::Null => put_null(out),
            Reply::Integer(number) => put_integer(out, *number),
            Reply::Bulk(bytes) => put_bulk(out, bytes),
            Reply::Simple(text) => put_simple(out, text),
            Reply::Error(error) => put_error(out, error.text().as_bytes()),
        }
    }
}

impl OperationError {
    /// Redis' text for it.
    pub fn text(self) -> &'static str {
        match self {
            OperationError::NotAnInteger => "ERR value is not an integer or out of range",
            OperationError::Overflow => "ERR increment or decrement would overflow",
            OperationError::TooLong => "ERR string exceeds maximum allowed size (proto-max-bulk-len)",
        }
    }
}

/// Makes the hashers of one map.
#[derive(Debug, Clone)]
struct Seed(u64);

impl Seed {
    fn random() -> Seed {
        // std seeds each `RandomState` from the operating system.
        Seed(RandomState::new().hash_one(()))
    }
}

impl BuildHasher for Seed {
    type Hasher = OneShot;

    fn build_hasher(&self) -> OneShot {
        OneShot(self.0)
    }
}

/// XXH3 over each piece on its own, seeded with the hash so far. A key is one piece behind its length, so
/// this spares the half kilobyte of state that the streaming hasher sets up.
struct OneShot(u64);

impl Hasher for OneShot {
    fn write(&mut self, bytes: &[u8]) {
        self.0 = xxh3_64_with_seed(bytes, self.0);
    }

    fn write_usize(&mut self, _len: usize) {
        // The length of the piece that follows, which XXH3 takes in anyway.
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::Command;
    use crate::resp::{Limits, RequestReader};

    /// Runs one inline command of a single key.
    fn run(store: &mut Keyspace, now_ms: u64, line: &str) -> String {
        let mut reader = RequestReader::new(Limits::default());
        reader.push(format!("{line}\r\n").as_bytes());
        let mut out = Vec::new();
        match Command::parse(reader.next_request().unwrap().unwrap(), now_ms) {
            Ok(Command::Key(request)) => store.apply(now_ms, request).put(&mut out),
            Ok(other) => panic!("not a command for one key: {other:?}"),
            Err(error) => error.put(&mut out),
        }
        assert_eq!(
            store.deadlines.len(),
            store.entries.values().filter(|entry| entry.deadline.is_some()).count(),
            "one deadline each"
        );
        String::from_utf8(out).unwrap().trim_end().to_owned()
    }

    #[test]
    fn a_key_is_gone_at_its_deadline_for_everybody() {
        for command in
            ["GET k", "STRLEN k", "TYPE k", "EXISTS k", "TTL k", "PERSIST k", "DEL k", "SET k v XX"]
        {
            let mut store = Keyspace::new();
            let missing = run(&mut store, 1, command);
            run(&mut store, 1000, "SET k v PX 500");
            assert_ne!(run(&mut store, 1499, command), missing, "{command}");
            let mut store = Keyspace::new();
            run(&mut store, 1000, "SET k v PX 500");
            assert_eq!((store.len(1499), store.len(1500)), (1, 0));
            assert!(store.keys(1500, &Glob::new(b"*"), usize::MAX).unwrap().is_empty());
            assert_eq!(run(&mut store, 1500, command), missing, "{command}");
            assert_eq!(store.entries.len(), 0, "{command} removes what it finds expired");
        }
    }

    #[test]
    fn time_to_live_rounds_to_the_nearest_second() {
        let mut store = Keyspace::new();
        run(&mut store, 1000, "SET k v PX 2500");
        for (now, seconds, milliseconds) in [(1000, 3, 2500), (1001, 2, 2499), (3000, 1, 500), (3001, 0, 499)]
        {
            assert_eq!(run(&mut store, now, "TTL k"), format!(":{seconds}"));
            assert_eq!(run(&mut store, now, "PTTL k"), format!(":{milliseconds}"));
        }
        run(&mut store, 1000, "PERSIST k");
        assert_eq!(run(&mut store, 9999, "TTL k"), ":-1");
        assert_eq!(run(&mut store, 9999, "TTL none"), ":-2");
    }

    #[test]
    fn what_keeps_a_deadline_and_what_clears_it() {
        for (command, kept) in [
            ("SET k 2", false),
            ("SET k 2 KEEPTTL", true),
            ("SET k 2 GET", false),
            ("GETSET k 2", false),
            ("SETNX k 2", true),
            ("SET k 2 NX", true),
            ("INCR k", true),
            ("DECRBY k 3", true),
            ("APPEND k 3", true),
            ("PERSIST k", false),
            ("GET k", true),
        ] {
            let mut store = Keyspace::new();
            run(&mut store, 1, "SET k 1 PX 100");
            run(&mut store, 1, command);
            assert_eq!(run(&mut store, 1, "PTTL k"), if kept { ":100" } else { ":-1" }, "{command}");
        }
    }

    #[test]
    fn sweep_removes_the_expired_within_its_budget() {
        let mut store = Keyspace::new();
        for key in 0..100 {
            run(&mut store, 0, &format!("SET k{key} v PX {}", 1000 + key));
            run(&mut store, 0, &format!("SET forever{key} v"));
        }
        assert_eq!(store.next_deadline_ms(), Some(1000));
        assert_eq!(store.sweep(999, 10), 0);
        assert_eq!(store.sweep(1049, 30), 30);
        assert_eq!(store.sweep(1049, 30), 20);
        assert_eq!(store.sweep(1049, 30), 0);
        assert_eq!((store.entries.len(), store.next_deadline_ms()), (150, Some(1050)));
        assert_eq!(store.sweep(u64::MAX, usize::MAX), 50);
        assert_eq!((store.len(0), store.next_deadline_ms()), (100, None));
    }

    #[test]
    fn moved_keys_keep_value_and_deadline() {
        let (mut from, mut to) = (Keyspace::new(), Keyspace::new());
        for key in 0..50 {
            run(&mut from, 0, &format!("SET k{key} {key} PX {}", 1000 + key));
            run(&mut from, 0, &format!("SET f{key} {key}"));
        }
        for (key, entry) in from.drain_where(|key| key.ends_with(b"7")) {
            assert!(to.adopt(key, entry).is_none());
        }
        assert_eq!((from.len(0), to.len(0)), (90, 10));
        assert_eq!(
            (run(&mut from, 0, "GET k17"), run(&mut to, 0, "GET k17")),
            ("$-1".into(), "$2\r\n17".into())
        );
        assert_eq!(
            (run(&mut to, 0, "PTTL k17"), run(&mut to, 0, "PTTL f17")),
            (":1017".into(), ":-1".into())
        );
        assert_eq!(run(&mut to, 1017, "GET k17"), "$-1");
        // An adopted entry replaces, deadline included.
        let entry = from.take(b"k1").unwrap();
        assert_eq!((entry.value(), entry.deadline_ms()), (&b"1"[..], Some(1001)));
        assert!(to.adopt(Bytes::copy_from(b"f7"), entry).is_some());
        assert_eq!(run(&mut to, 0, "PTTL f7"), ":1001");
        assert_eq!(to.sweep(2000, 99), 5);
    }

    #[test]
    fn conditions_of_expire() {
        let mut store = Keyspace::new();
        run(&mut store, 0, "SET k v");
        for (command, reply, left) in [
            ("PEXPIRE k 100 XX", ":0", ":-1"),
            ("PEXPIRE k 100 GT", ":0", ":-1"),
            ("PEXPIRE k 100 LT", ":1", ":100"),
            ("PEXPIRE k 200 NX", ":0", ":100"),
            ("PEXPIRE k 100 GT", ":0", ":100"),
            ("PEXPIRE k 200 GT", ":1", ":200"),
            ("PEXPIRE k 200 LT", ":0", ":200"),
            ("PEXPIRE k 150 XX LT", ":1", ":150"),
            ("PEXPIRE none 100", ":0", ":150"),
            ("PEXPIRE k -1 GT", ":0", ":150"),
            ("PEXPIRE k -1", ":1", ":-2"),
        ] {
            assert_eq!(
                (run(&mut store, 5, command), run(&mut store, 5, "PTTL k")),
                (reply.into(), left.into())
            );
        }
    }

    #[test]
    fn appended_values_are_not_shared_with_earlier_replies() {
        let mut store = Keyspace::new();
        run(&mut store, 0, "SET k 0123456789012345678901234567890");
        let key = || Bytes::copy_from(b"k");
        let before = store.apply(0, KeyRequest { key: key(), operation: Operation::Get });
        assert_eq!(run(&mut store, 0, "APPEND k xyz"), ":34");
        assert_eq!(before, Reply::Bulk(Bytes::copy_from(b"0123456789012345678901234567890")));
    }
}
