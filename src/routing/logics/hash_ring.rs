//! A ring for consistent hashing: it finds the owner of a key, and the members behind the owner.
//!
//! Every member has some points on a circle of 64-bit numbers, and owns the keys that lie between the point
//! before and each of its own. Adding a member takes keys from the others and moves none between them;
//! removing it gives its keys away and moves no others.
//!
//! # Wire contract
//!
//! Point `r` of an identity, from 0, is the [key hash](crate::routing::logics::hash_key) of the pair (`str`, `r` as `u32`). Points
//! are ordered by (point, identity), so that the order in which members are listed decides nothing, not even
//! when points of two members collide. A test holds the owners of some keys as constants.
//!
//! # Lookup
//!
//! Points are hashes and so spread evenly. A table over the upper bits of the point says where each bucket's points
//! begin. A bucket has about one point, nearly never more than a few, and the points of later buckets lie behind the
//! hash. So the answer is found by counting how many of the next few lie before it: always as many comparisons, and no
//! branch that a processor could predict wrong.

use crate::routing::logics::hash_key::{HashKey, KeySink};
use crate::settings::setting_error::SettingError;
use std::cmp::Ordering;
use std::collections::HashMap;
use std::num::NonZeroU32;

/// The default number of points of a member: a load within about a fifth of the mean.
pub(crate) const VIRTUAL_NODES: NonZeroU32 = NonZeroU32::new(160).unwrap();

/// A larger number of points for each routee is a mistake, and takes a megabyte.
pub(crate) const VIRTUAL_NODES_MAX: u32 = 1 << 16;

/// So many points are compared at once.
const WINDOW: usize = 4;

/// An immutable ring; members are known by their index in the list that it was built from. For logics of your own:
/// [`ConsistentHashing`](crate::routing::ConsistentHashing) [prepares](crate::routing::RoutingLogic::prepare) such a
/// ring.
///
/// ```
/// use pointsman::routing::{HashKey, Ring};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let ring = Ring::new([("/user/north", 160), ("/user/south", 160)])?;
/// let key = "pear".key_hash();
/// let order: Vec<usize> = ring.successors(key).collect();
/// assert_eq!((order.len(), Some(order[0])), (2, ring.owner(key)));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
#[repr(align(64))] // all senders read it: see `routing_ref.rs`
pub struct Ring {
    /// In ring order, and [`WINDOW`] more at the end that lie behind every hash.
    points: Box<[Point]>,
    /// Where the points of each bucket begin.
    buckets: Box<[u32]>,
    /// How far a hash is shifted to get its bucket.
    shift: u32,
    members: usize,
}

/// A point and its member side by side: a look-up in a large ring meets one cache line less.
#[derive(Debug, Clone, Copy)]
struct Point {
    at: u64,
    member: u32,
}

impl Ring {
    /// Returns the bytes of the ring, the memory behind it included.
    pub(crate) fn bytes(&self) -> usize {
        size_of::<Self>() + size_of_val(&*self.points) + size_of_val(&*self.buckets)
    }

    /// Builds a ring from identities and their numbers of virtual nodes.
    ///
    /// An identity that is listed again has further points of its own, so twice the weight in all. The order in the
    /// list decides which of its keys go to which of the two.
    ///
    /// # Errors
    ///
    /// If a member has 0 virtual nodes, or all of them together 2^32 − 1 or more.
    pub fn new<'a>(members: impl IntoIterator<Item = (&'a str, u32)>) -> Result<Self, SettingError> {
        Self::placed_by(members, |identity, node| (identity, node).key_hash())
    }

    /// As [`new`](Self::new), by another hash of the same encoding: for keys that are hashed by it, too.
    pub(crate) fn hashed_by<'a>(
        members: impl IntoIterator<Item = (&'a str, u32)>,
        hash: impl Fn(&[u8]) -> u64,
    ) -> Result<Self, SettingError> {
        Self::placed_by(members, |identity, node| {
            let mut sink = KeySink::keeping();
            sink.feed(&(identity, node));
            hash(sink.kept())
        })
    }

    fn placed_by<'a>(
        members: impl IntoIterator<Item = (&'a str, u32)>,
        point: impl Fn(&str, u32) -> u64,
    ) -> Result<Self, SettingError> {
        let members: Vec<(&str, u32)> = members.into_iter().collect();
        if let Some((identity, _)) = members.iter().find(|(_, nodes)| *nodes == 0) {
            let setting = format!("virtual nodes of member {identity:?}");
            return Err(SettingError::new(setting, 0, "at least 1, or it would own no key"));
        }
        let total: u64 = members.iter().map(|(_, nodes)| u64::from(*nodes)).sum();
        if total >= u64::from(u32::MAX) {
            let allowed = format!("at most {}: use fewer virtual nodes", u32::MAX - 1);
            return Err(SettingError::new("points of the ring", total, allowed));
        }

        let mut placed: Vec<(u64, u32)> = Vec::with_capacity(total as usize);
        let mut used: HashMap<&str, u32> = HashMap::new();
        for (index, (identity, nodes)) in (0..).zip(&members) {
            let first = used.entry(identity).or_default();
            placed.extend((*first..*first + nodes).map(|node| (point(identity, node), index)));
            *first += nodes;
        }
        placed.sort_unstable_by(|a, b| ring_order(&members, *a, *b));
        Ok(Self::from_ordered(&placed, members.len()))
    }

    /// Returns this ring over a list of `count` in which its members stand at these places.
    pub(crate) fn of_list(mut self, places: &[u32], count: usize) -> Self {
        let behind = self.count();
        self.points[..behind].iter_mut().for_each(|point| point.member = places[point.member as usize]);
        self.members = count;
        self
    }

    /// Returns the number of listed members.
    pub fn members(&self) -> usize {
        self.members
    }

    /// Returns the member that owns a hash, or `None` in an empty ring.
    #[inline]
    pub fn owner(&self, hash: u64) -> Option<usize> {
        if self.members == 0 {
            return None;
        }
        Some(self.points[self.first_at_or_after(hash)].member as usize)
    }

    /// Iterates over all members, each once, in the order in which they follow clockwise: the owner first, then the
    /// member that is asked when the owner refuses.
    pub fn successors(&self, hash: u64) -> Successors<'_> {
        let start = self.first_at_or_after(hash);
        Successors { ring: self, next: start, steps: 0, given: vec![false; self.members] }
    }

    fn from_ordered(placed: &[(u64, u32)], members: usize) -> Self {
        // At least two buckets, since a shift by all 64 bits is none.
        let bits = placed.len().next_power_of_two().ilog2().max(1);
        let shift = u64::BITS - bits;
        let mut buckets = Vec::with_capacity(1 << bits);
        let mut begin = 0;
        for bucket in 0..1_u64 << bits {
            begin += placed[begin..].iter().take_while(|(point, _)| point >> shift < bucket).count();
            buckets.push(begin as u32);
        }
        let behind = std::iter::repeat_n(Point { at: u64::MAX, member: 0 }, WINDOW);
        Self {
            points: placed.iter().map(|&(at, member)| Point { at, member }).chain(behind).collect(),
            buckets: buckets.into(),
            shift,
            members,
        }
    }

    /// Returns the number of points that belong to members.
    #[inline]
    fn count(&self) -> usize {
        self.points.len() - WINDOW
    }

    /// The place of the first point not before `hash`, going round at the end.
    #[inline]
    fn first_at_or_after(&self, hash: u64) -> usize {
        let begin = self.buckets[(hash >> self.shift) as usize] as usize;
        let later = begin + WINDOW;
        let mut place = begin + self.points[begin..later].iter().filter(|point| point.at < hash).count();
        if place == later {
            // A bucket with so many points needs a further search.
            place += self.points[later..].iter().take_while(|point| point.at < hash).count();
        }
        if place == self.count() { 0 } else { place }
    }
}

/// The members that follow a hash; see [`Ring::successors`].
#[derive(Debug, Clone)]
pub struct Successors<'r> {
    ring: &'r Ring,
    next: usize,
    steps: usize,
    given: Vec<bool>,
}

impl Iterator for Successors<'_> {
    type Item = usize;

    fn next(&mut self) -> Option<usize> {
        while self.steps < self.ring.count() {
            let member = self.ring.points[self.next].member as usize;
            self.steps += 1;
            self.next = (self.next + 1) % self.ring.count();
            if !std::mem::replace(&mut self.given[member], true) {
                return Some(member);
            }
        }
        None
    }
}

/// By point, then by identity; members of one identity in the order listed.
fn ring_order(members: &[(&str, u32)], a: (u64, u32), b: (u64, u32)) -> Ordering {
    let identity = |member: u32| members[member as usize].0;
    a.0.cmp(&b.0).then_with(|| identity(a.1).cmp(identity(b.1))).then(a.1.cmp(&b.1))
}

#[cfg(all(test, not(pointsman_loom)))]
mod tests {
    use super::Ring;
    use super::VIRTUAL_NODES;
    use crate::routing::logics::hash_key::HashKey;
    use crate::settings::setting_error::SettingError;
    use rand::rngs::SmallRng;
    use rand::{RngExt, SeedableRng};

    fn names(range: std::ops::Range<usize>) -> Vec<String> {
        range.map(|i| format!("/user/cache/routee-{i}")).collect()
    }

    fn ring(names: &[String]) -> Ring {
        Ring::new(names.iter().map(|name| (name.as_str(), VIRTUAL_NODES.get()))).expect("nodes are given")
    }

    fn owner<'n>(names: &'n [String], ring: &Ring, hash: u64) -> &'n str {
        &names[ring.owner(hash).expect("the ring has members")]
    }

    #[test]
    fn an_empty_ring_owns_nothing() {
        let ring = Ring::new([]).expect("no member, no error");
        assert_eq!((ring.owner(5), ring.successors(5).next()), (None, None));
    }

    #[test]
    fn a_member_without_points_is_refused() {
        let refused = Ring::new([("a", 1), ("b", 0)]).expect_err("0 virtual nodes");
        let allowed = "at least 1, or it would own no key";
        assert_eq!(refused, SettingError::new("virtual nodes of member \"b\"", 0, allowed));
        assert_eq!(
            refused.to_string(),
            "virtual nodes of member \"b\" 0: must be at least 1, or it would own no key"
        );
    }

    #[test]
    fn lookup_agrees_with_the_definition() {
        let mut random = SmallRng::seed_from_u64(1);
        for members in [1, 2, 3, 17] {
            for nodes in [1, 2, 160] {
                let names = names(0..members);
                let ring =
                    Ring::new(names.iter().map(|name| (name.as_str(), nodes))).expect("nodes are given");
                let points = &ring.points[..ring.count()];
                let near = points.iter().flat_map(|p| [p.at.wrapping_sub(1), p.at, p.at.wrapping_add(1)]);
                let far = (0..500).map(|_| random.random()).chain([0, u64::MAX]);
                for hash in near.chain(far).collect::<Vec<u64>>() {
                    let place = points.partition_point(|point| point.at < hash) % points.len();
                    assert_eq!(ring.owner(hash), Some(points[place].member as usize), "{hash:#x}");
                }
            }
        }
    }

    #[test]
    fn successors_are_all_members_once_and_begin_with_the_owner() {
        let ring = ring(&names(0..9));
        for key in 0..200_u64 {
            let hash = key.key_hash();
            let mut all: Vec<usize> = ring.successors(hash).collect();
            assert_eq!(all.first().copied(), ring.owner(hash));
            all.sort_unstable();
            assert_eq!(all, (0..9).collect::<Vec<_>>());
        }
    }

    #[test]
    fn the_order_of_the_list_decides_nothing() {
        let forward = names(0..12);
        let mut backward = forward.clone();
        backward.reverse();
        let (one, other) = (ring(&forward), ring(&backward));
        for key in 0..2_000_u64 {
            let hash = key.key_hash();
            assert_eq!(owner(&forward, &one, hash), owner(&backward, &other, hash));
        }
    }

    #[test]
    fn a_new_member_only_takes_and_a_lost_one_gives_its_keys_to_their_successors() {
        let mut random = SmallRng::seed_from_u64(2);
        for _ in 0..20 {
            let count = random.random_range(2..20);
            let larger = names(0..count);
            let lost = random.random_range(0..count);
            let mut smaller = larger.clone();
            let gone = smaller.remove(lost);
            let (full, reduced) = (ring(&larger), ring(&smaller));
            for _ in 0..1_000 {
                let hash = random.random();
                let before = owner(&larger, &full, hash);
                let after = owner(&smaller, &reduced, hash);
                if before == gone {
                    let next = full.successors(hash).nth(1).expect("two members at least");
                    assert_eq!(after, larger[next]);
                } else {
                    assert_eq!(before, after, "only the keys of {gone} move");
                }
            }
        }
    }

    #[test]
    fn the_load_is_balanced() {
        const KEYS: u64 = 100_000;
        // Share of the mean; the standard deviation with 160 points a member is about 0.08.
        for members in [3, 8, 32] {
            let ring = ring(&names(0..members));
            let mut loads = vec![0_u64; members];
            for key in 0..KEYS {
                loads[ring.owner(key.key_hash()).expect("the ring has members")] += 1;
            }
            let mean = KEYS / members as u64;
            for load in loads {
                assert!((mean * 65 / 100..mean * 135 / 100).contains(&load), "{load} of {mean} on {members}");
            }
        }
    }

    #[test]
    fn weight_follows_the_number_of_points() {
        let ring = Ring::new([("light", 160), ("heavy", 480)]).expect("nodes are given");
        let heavy = (0..10_000_u64).filter(|key| ring.owner(key.key_hash()) == Some(1)).count();
        assert!((6_500..8_500).contains(&heavy), "{heavy} of 10000, about 7500 expected");
    }

    #[test]
    fn an_identity_listed_twice_has_the_points_of_one_with_double_weight() {
        let twice = Ring::new([("twin", 160), ("other", 160), ("twin", 160)]).expect("nodes are given");
        let once = Ring::new([("twin", 320), ("other", 160)]).expect("nodes are given");
        let mut owned = [0; 3];
        for key in 0..3_000_u64 {
            let owner = twice.owner(key.key_hash()).expect("the ring has members");
            owned[owner] += 1;
            assert_eq!(once.owner(key.key_hash()), Some(owner % 2));
        }
        assert!(owned.iter().all(|keys| *keys > 600), "{owned:?}");
    }

    #[test]
    fn a_new_member_takes_about_its_share_and_no_more() {
        const KEYS: u64 = 20_000;
        for members in [5, 10, 50] {
            let (before, after) = (ring(&names(0..members)), ring(&names(0..members + 1)));
            let moved =
                (0..KEYS).map(|key| key.key_hash()).filter(|hash| before.owner(*hash) != after.owner(*hash));
            // Akka's ring of 10 points moves 22.6 % of 16.7 % at five members.
            let (moved, ideal) = (moved.count() as u64, KEYS / (members as u64 + 1));
            assert!(
                (ideal * 7 / 10..ideal * 13 / 10).contains(&moved),
                "{moved} of {ideal} to one of {members}"
            );
        }
    }

    #[test]
    fn points_that_collide_are_kept_and_ordered_by_identity_however_they_are_listed() {
        fn owners_of_collision(listed: [&'static str; 3]) -> Vec<&'static str> {
            let members = listed.map(|name| (name, 1));
            let mut placed: Vec<(u64, u32)> = (0..3).map(|index| (7_u64 << 60, index)).collect();
            placed.sort_unstable_by(|a, b| super::ring_order(&members, *a, *b));
            let ring = Ring::from_ordered(&placed, 3);
            let order: Vec<&str> = ring.successors(5).map(|index| listed[index]).collect();
            assert_eq!(ring.owner(5).map(|index| listed[index]), order.first().copied());
            assert_eq!(order.len(), 3, "no point is lost");
            order
        }
        assert_eq!(owners_of_collision(["a", "b", "c"]), ["a", "b", "c"]);
        assert_eq!(owners_of_collision(["c", "a", "b"]), ["a", "b", "c"]);
    }

    #[test]
    fn the_owners_are_fixed_for_ever() {
        let ring = ring(&names(0..10));
        let found: Vec<usize> =
            (0..20_u64).map(|key| ring.owner(key.key_hash()).expect("the ring has members")).collect();
        assert_eq!(found, GOLDEN, "nodes of different versions would disagree about the owner of a key");
    }

    const GOLDEN: [usize; 20] = [7, 7, 7, 2, 1, 5, 5, 8, 7, 7, 6, 1, 4, 8, 0, 4, 0, 0, 7, 9];
}
