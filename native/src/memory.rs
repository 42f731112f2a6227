//! The process-wide memory ceiling, the only one that regorus's interpreter looks at.
//!
//! While pairs are judged the ceiling stands at the bytes alive when the first judging began plus the allowance of all
//! judgings under way. A pair that meets it may suffer for its neighbours, so it is judged again with every other pair
//! of the process held back ([`alone`]).

use std::sync::{Mutex, PoisonError, RwLock};

/// Held for reading by a pair, for writing by a pair that is judged alone.
static GATE: RwLock<()> = RwLock::new(());
static CEILING: Mutex<Ceiling> = Mutex::new(Ceiling { judgings: 0, alive: 0, allowance: 0 });

struct Ceiling {
    judgings: usize,
    alive: u64,
    allowance: u64,
}

impl Ceiling {
    fn apply(&self) {
        let limit = (self.judgings > 0).then(|| self.alive.saturating_add(self.allowance));
        regorus::set_global_memory_limit(limit);
    }
}

fn with_ceiling<R>(change: impl FnOnce(&mut Ceiling) -> R) -> R {
    let mut ceiling = CEILING.lock().unwrap_or_else(PoisonError::into_inner);
    let given = change(&mut ceiling);
    ceiling.apply();
    given
}

fn alive() -> u64 {
    regorus_mimalloc::allocation_stats_snapshot().0.allocated
}

/// An allowance that counts until it is dropped.
#[derive(Debug)]
pub struct Allowance(u64);

impl Allowance {
    /// Adds to the ceiling for one judging; `bytes` is for all of its threads together.
    #[must_use]
    pub fn new(bytes: u64) -> Self {
        with_ceiling(|ceiling| {
            if ceiling.judgings == 0 {
                ceiling.alive = alive();
            }
            ceiling.judgings += 1;
            ceiling.allowance = ceiling.allowance.saturating_add(bytes);
        });
        Self(bytes)
    }
}

impl Drop for Allowance {
    fn drop(&mut self) {
        with_ceiling(|ceiling| {
            ceiling.judgings = ceiling.judgings.saturating_sub(1);
            ceiling.allowance = ceiling.allowance.saturating_sub(self.0);
        });
    }
}

/// Runs one pair beside others.
pub fn beside<R>(run: impl FnOnce() -> R) -> R {
    let _held = GATE.read().unwrap_or_else(PoisonError::into_inner);
    run()
}

/// Runs one pair while no other pair of the process runs, under a ceiling of its own.
pub fn alone<R>(bytes: u64, run: impl FnOnce() -> R) -> R {
    let _held = GATE.write().unwrap_or_else(PoisonError::into_inner);
    regorus::set_global_memory_limit(Some(alive().saturating_add(bytes)));
    let given = run();
    with_ceiling(|_| ());
    given
}

/// Runs something that is not a pair, such as parsing, without any ceiling.
pub fn unbounded<R>(run: impl Fn() -> anyhow::Result<R>) -> anyhow::Result<R> {
    beside(&run).or_else(|error| {
        if !error.to_string().contains("exceeded memory limit") {
            return Err(error);
        }
        alone(u64::MAX, run)
    })
}
