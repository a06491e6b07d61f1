//! Decisions that are the same for the same seed.

/// A stream of numbers (splitmix64).
pub struct Dice(u64);

impl Dice {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The stream of a part of what `seed` is for: another for each number.
    pub fn of(seed: u64, number: u64) -> Self {
        Self(Self(seed ^ number.wrapping_mul(0xa076_1d64_78bd_642f)).draw())
    }

    pub fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `sides`.
    pub fn roll(&mut self, sides: usize) -> usize {
        ((u128::from(self.draw()) * sides as u128) >> 64) as usize
    }

    /// True `count` times in `of`.
    pub fn hits(&mut self, count: usize, of: usize) -> bool {
        self.roll(of) < count
    }

    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.roll(from.len())]
    }
}
