//! Strict validation of a JSON document in one pass, without recursion.

use crate::scan::{skip_space, unescape, Ruler};
use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};

mod scalars;

/// Keys of one object that are compared one by one before they are put into a set.
const FEW_KEYS: usize = 16;

/// What is wrong with a document, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// One of utf8, bom, syntax, duplicate-key, nan, depth, trailing, empty, number.
    pub kind: &'static str,
    /// JSON Pointer of the place.
    pub pointer: String,
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
}

/// An open array or object.
struct Frame {
    /// Index in the array; none for an object.
    index: Option<usize>,
    /// Where the keys of this object start in `Reader::keys`.
    first_key: usize,
    /// The hashes of the keys, once there are many.
    hashes: Option<HashSet<u64>>,
}

struct Reader<'a> {
    text: &'a str,
    bytes: &'a [u8],
    at: usize,
    max_depth: usize,
    frames: Vec<Frame>,
    /// Hash, start and end (quotes included) of the keys of all open objects.
    keys: Vec<(u64, usize, usize)>,
    hasher: RandomState,
}

/// A kind and the byte where it was met.
type Step<T> = Result<T, (&'static str, usize)>;

/// Validates a document; `None` when it is good.
///
/// Refuses invalid UTF-8, a byte order mark, duplicate keys (compared with escapes resolved), `NaN` and infinities,
/// nesting deeper than `max_depth`, numbers beyond the range of a double, integers of more than 64 bits, unpaired surrogates, and anything after the
/// document.
#[must_use]
pub fn check(document: &[u8], max_depth: usize) -> Option<Refusal> {
    if document.starts_with(b"\xef\xbb\xbf") {
        return Some(Refusal { kind: "bom", pointer: String::new(), line: 1, column: 1 });
    }
    let (text, valid) = match std::str::from_utf8(document) {
        Ok(text) => (text, true),
        Err(error) => (std::str::from_utf8(&document[..error.valid_up_to()]).unwrap_or_default(), false),
    };
    let mut reader = Reader {
        text,
        bytes: text.as_bytes(),
        at: 0,
        max_depth,
        frames: Vec::new(),
        keys: Vec::new(),
        hasher: RandomState::new(),
    };
    let (kind, at) = match reader.document() {
        Ok(()) if valid => return None,
        Ok(()) => ("utf8", text.len()),
        Err((_, at)) if !valid && at >= text.len() => ("utf8", text.len()),
        Err(met) => met,
    };
    let (line, column) = Ruler::new(text.as_bytes()).place(at.min(text.len()));
    Some(Refusal { kind, pointer: reader.pointer(), line, column })
}

impl Reader<'_> {
    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn document(&mut self) -> Step<()> {
        self.at = skip_space(self.bytes, 0);
        if self.at == self.bytes.len() {
            return Err(("empty", self.at));
        }
        self.value()?;
        while !self.frames.is_empty() {
            self.member()?;
        }
        self.at = skip_space(self.bytes, self.at);
        if self.at < self.bytes.len() {
            return Err(("trailing", self.at));
        }
        Ok(())
    }

    /// Reads a scalar, or the start of an array or object.
    fn value(&mut self) -> Step<()> {
        match self.peek() {
            Some(b'"') => self.string(),
            Some(b'{') => self.open(None),
            Some(b'[') => self.open(Some(0)),
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(b'N') => self.not_a_number("NaN"),
            Some(b'I') => self.not_a_number("Infinity"),
            Some(b't') => self.word("true"),
            Some(b'f') => self.word("false"),
            Some(b'n') => self.word("null"),
            _ => Err(("syntax", self.at)),
        }
    }

    fn open(&mut self, index: Option<usize>) -> Step<()> {
        if self.frames.len() >= self.max_depth {
            return Err(("depth", self.at));
        }
        self.at = skip_space(self.bytes, self.at + 1);
        self.frames.push(Frame { index, first_key: self.keys.len(), hashes: None });
        let (closing, array) = if index.is_some() { (b']', true) } else { (b'}', false) };
        match self.peek() {
            Some(byte) if byte == closing => self.close(),
            _ if array => self.value(),
            _ => self.key_and_value(),
        }
    }

    fn close(&mut self) -> Step<()> {
        self.at += 1;
        if let Some(frame) = self.frames.pop() {
            self.keys.truncate(frame.first_key);
        }
        Ok(())
    }

    /// Reads what follows a value in the innermost array or object.
    fn member(&mut self) -> Step<()> {
        self.at = skip_space(self.bytes, self.at);
        let Some(frame) = self.frames.last_mut() else {
            return Ok(());
        };
        match (self.bytes.get(self.at), &mut frame.index) {
            (Some(b']'), Some(_)) | (Some(b'}'), None) => self.close(),
            (Some(b','), Some(index)) => {
                *index += 1;
                self.at = skip_space(self.bytes, self.at + 1);
                self.value()
            }
            (Some(b','), None) => {
                self.at = skip_space(self.bytes, self.at + 1);
                self.key_and_value()
            }
            _ => Err(("syntax", self.at)),
        }
    }

    fn key_and_value(&mut self) -> Step<()> {
        let start = self.at;
        if self.peek() != Some(b'"') {
            return Err(("syntax", start));
        }
        self.string()?;
        self.note_key(start)?;
        self.at = skip_space(self.bytes, self.at);
        if self.peek() != Some(b':') {
            return Err(("syntax", self.at));
        }
        self.at = skip_space(self.bytes, self.at + 1);
        self.value()
    }

    fn note_key(&mut self, start: usize) -> Step<()> {
        let end = self.at;
        let quoted = &self.text[start..end];
        let hash = match quoted.contains('\\') {
            true => self.hasher.hash_one(unescape(quoted).ok_or(("syntax", start))?.as_str()),
            false => self.hasher.hash_one(&quoted[1..quoted.len() - 1]),
        };
        let Some(frame) = self.frames.last_mut() else {
            return Err(("syntax", start));
        };
        let keys = &self.keys[frame.first_key..];
        if keys.len() == FEW_KEYS {
            frame.hashes = Some(keys.iter().map(|key| key.0).collect());
        }
        let met = frame.hashes.as_mut().is_none_or(|hashes| !hashes.insert(hash));
        let duplicate = met && keys.iter().any(|key| key.0 == hash && same_key(&self.text[key.1..key.2], quoted));
        self.keys.push((hash, start, end));
        if duplicate {
            return Err(("duplicate-key", start));
        }
        Ok(())
    }

    /// The JSON Pointer of the value that is being read.
    fn pointer(&self) -> String {
        let mut pointer = String::new();
        for (place, frame) in self.frames.iter().enumerate() {
            let next_key = self.frames.get(place + 1).map_or(self.keys.len(), |next| next.first_key);
            let token = match frame.index {
                Some(index) => index.to_string(),
                None if next_key == frame.first_key => break,
                None => unescape(&self.text[self.keys[next_key - 1].1..self.keys[next_key - 1].2]).unwrap_or_default(),
            };
            pointer.push('/');
            pointer.push_str(&token.replace('~', "~0").replace('/', "~1"));
        }
        pointer
    }
}

fn same_key(left: &str, right: &str) -> bool {
    left == right || (left.contains('\\') || right.contains('\\')) && unescape(left) == unescape(right)
}

#[cfg(test)]
mod tests;
