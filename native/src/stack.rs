//! The stack that deep data and long chains of rules need.

/// Virtual memory of a thread's stack: deep data and long chains of rules must not overflow it.
pub const STACK_BYTES: usize = 256 << 20;

/// Runs what may recurse deeply.
///
/// # Errors
/// Those of `run`, and a message when it panics.
pub(crate) fn on_a_deep_stack<R: Send>(run: impl FnOnce() -> Result<R, String> + Send) -> Result<R, String> {
    std::thread::scope(|scope| {
        let builder = std::thread::Builder::new().stack_size(STACK_BYTES);
        let thread = builder.spawn_scoped(scope, run).map_err(|error| format!("cannot start a thread: {error}"))?;
        thread.join().unwrap_or_else(|_| Err("the compiler panicked".to_owned()))
    })
}
