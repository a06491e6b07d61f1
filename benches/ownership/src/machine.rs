//! The times that a machine takes for the things that the paths do.

/// Picoseconds.
pub type Time = u64;

/// The time of so many nanoseconds.
pub fn picoseconds(nanoseconds: f64) -> Time {
    (nanoseconds * 1000.0).round() as Time
}

/// The constants of one machine, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Machine {
    /// An instruction of the paths, without misses: 2.6 in a cycle.
    pub instruction: f64,
    /// A read-modify-write on a line that the core has.
    pub change: f64,
    /// A line moves to a core that reads it and waits.
    pub far_read: f64,
    /// A line moves to a core that changes it, without the change.
    pub far_change: f64,
    /// A line moves to a core that stores to it; its next read-modify-write waits for that.
    pub far_store: f64,
    /// The same, while another core stores to the line. Fitted.
    pub crowded: f64,
    /// How long the core that has a line goes on with it when another core has asked for it. Fitted.
    pub retained: f64,
    /// A line moves to a core that has begun to read it early.
    pub ahead: f64,
    /// A hint of a loop that waits.
    pub pause: f64,
    /// A call to the kernel that gives the core to another thread, where none waits.
    pub yielding: f64,
    /// A block of 31 slots from the allocator, in memory that the process did not have before.
    pub fresh_block: f64,
    /// To wake a thread, for the thread that wakes.
    pub wake: f64,
    /// From then until the woken thread runs.
    pub wake_latency: f64,
}

/// The machine of the figures in `docs/scaling.md`: an Intel Xeon of the fourth generation, two cores of a virtual
/// machine, 2026-11-26.
pub const XEON: Machine = Machine {
    instruction: 0.13,
    change: 6.1,
    far_read: 46.5,
    far_change: 40.0,
    far_store: 78.0,
    crowded: 125.0,
    retained: 13.0,
    ahead: 5.7,
    pause: 11.6,
    yielding: 219.0,
    fresh_block: 320.0,
    wake: 2300.0,
    wake_latency: 1400.0,
};

impl Machine {
    /// This machine with lines that take so many times as long to move.
    pub fn with_slower_lines(self, factor: f64) -> Self {
        Self {
            far_read: factor * self.far_read,
            far_change: factor * self.far_change,
            far_store: factor * self.far_store,
            crowded: factor * self.crowded,
            ahead: factor * self.ahead,
            ..self
        }
    }
}

/// Marsaglia's xorshift, so that a run of one seed is the same each time.
#[derive(Debug)]
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(0x9e37_79b9_7f4a_7c15 ^ seed.wrapping_mul(0xd134_2543_de82_ef95))
    }

    /// A time from half to one and a half of this. Without that, threads of the same program would never meet, or meet
    /// each time.
    pub fn vary(&mut self, time: Time) -> Time {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        time / 2 + self.0 % (time + 1)
    }
}
