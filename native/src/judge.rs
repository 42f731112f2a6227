//! Judging pairs on several threads, with the outcomes in the order of the pairs.

use crate::bench::{Bench, Outcome, Pair};
use crate::memory::Allowance;
use crate::stack::STACK_BYTES;
use crate::worker::Worker;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::OnceLock;

/// Pairs that a thread takes at a time.
const CHUNK: usize = 64;

/// Judges the pairs on `threads` threads and gives their outcomes in the same order.
///
/// # Errors
/// A message when a thread cannot be started or an index of a pair is out of range.
pub fn judge(bench: Bench<'_>, pairs: &[Pair], threads: usize) -> Result<Vec<Outcome>, String> {
    admit(bench, pairs)?;
    let threads = threads.clamp(1, pairs.len().div_ceil(CHUNK).max(1));
    let bytes = bench.limits.memory.saturating_mul(u64::try_from(threads).unwrap_or(u64::MAX));
    let _allowance = bench.program.uses_interpreter().then(|| Allowance::new(bytes));
    let next = AtomicUsize::new(0);
    let outcomes: Vec<OnceLock<Outcome>> = pairs.iter().map(|_| OnceLock::new()).collect();
    std::thread::scope(|scope| {
        for _ in 0..threads {
            std::thread::Builder::new()
                .stack_size(STACK_BYTES)
                .spawn_scoped(scope, || work(bench, pairs, threads, &next, &outcomes))
                .map_err(|error| format!("cannot start a thread: {error}"))?;
        }
        Ok::<(), String>(())
    })?;
    outcomes.into_iter().map(|slot| slot.into_inner().ok_or_else(|| "a pair was not judged".to_owned())).collect()
}

fn work(bench: Bench<'_>, pairs: &[Pair], threads: usize, next: &AtomicUsize, outcomes: &[OnceLock<Outcome>]) {
    let mut worker = if threads == 1 { Worker::new(bench) } else { Worker::apart(bench) };
    loop {
        let start = next.fetch_add(CHUNK, Ordering::Relaxed);
        let end = pairs.len().min(start.saturating_add(CHUNK));
        if start >= end {
            break;
        }
        for (pair, slot) in pairs[start..end].iter().zip(&outcomes[start..end]) {
            // A slot is taken once, since the counter gives each index to one thread.
            let _ = slot.set(worker.judge(*pair));
        }
    }
    worker.close();
    regorus::flush_thread_memory_counters();
}

fn admit(bench: Bench<'_>, pairs: &[Pair]) -> Result<(), String> {
    let (policies, subjects) = (bench.program.len(), bench.documents.len());
    if bench.parameters.len() != policies {
        return Err(format!("{} parameters given for {policies} policies", bench.parameters.len()));
    }
    for (place, pair) in pairs.iter().enumerate() {
        if pair.policy >= policies || pair.subject.max(pair.workspace.unwrap_or(0)) >= subjects {
            return Err(format!("pair {place} is out of range: {policies} policies, {subjects} subjects"));
        }
    }
    Ok(())
}
