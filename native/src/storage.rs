//! Programs of the RVM as bytes, in regorus's own binary form.

use regorus::rvm::program::DeserializationResult;
use regorus::rvm::Program;

/// A program as bytes, or `None` when what is read back would not be the same program in every part.
#[must_use]
pub fn written(program: &Program) -> Option<Vec<u8>> {
    let bytes = program.serialize_binary().ok()?;
    let back = read(&bytes).ok()?;
    // regorus gives programs no equality; their debug form shows every part, literals and their numbers included.
    (format!("{program:?}") == format!("{back:?}")).then_some(bytes)
}

/// The program in some bytes.
///
/// # Errors
/// A message when they hold none, or one that regorus could read only in part.
pub fn read(bytes: &[u8]) -> Result<Program, String> {
    match Program::deserialize_binary(bytes)? {
        DeserializationResult::Complete(program) => Ok(program),
        DeserializationResult::Partial(_) => Err("the stored program can be read only in part".to_owned()),
    }
}
