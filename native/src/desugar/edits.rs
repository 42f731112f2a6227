//! Changes to a text, collected first and applied together.

/// Text to put in place of the bytes from `start` to `end`.
#[derive(Debug)]
pub(crate) struct Edit {
    /// Where the replaced text starts.
    pub start: usize,
    /// Where it ends.
    pub end: usize,
    /// Which of the edits at one place comes first.
    pub rank: Rank,
    /// What comes in its place.
    pub text: String,
}

/// The order of edits at one place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Rank {
    /// The start of a body.
    Open,
    /// The end of an expression.
    Tail,
    /// A statement or an expression.
    Inside,
    /// The end of a body.
    Close,
}

/// The text with the edits in it.
pub(crate) fn apply(source: &str, mut edits: Vec<Edit>) -> String {
    edits.sort_by_key(|edit| (edit.start, edit.rank, edit.end));
    let mut text = String::with_capacity(source.len() + 32 * edits.len());
    let mut at = 0;
    for edit in edits {
        text.push_str(&source[at..edit.start]);
        text.push_str(&edit.text);
        at = edit.end;
    }
    text.push_str(&source[at..]);
    text
}
