//! The bytes of a JSON document: places in it, strings, and what may be skipped.

/// Bytes from the start of a string to a place where it needs a closer look, by byte.
const PLAIN: [bool; 256] = plain();

const fn plain() -> [bool; 256] {
    let mut table = [true; 256];
    let mut byte = 0;
    while byte < 0x20 {
        table[byte] = false;
        byte += 1;
    }
    table[b'"' as usize] = false;
    table[b'\\' as usize] = false;
    table
}

/// The first place at or after `at` whose byte is no white space of JSON.
#[must_use]
pub fn skip_space(bytes: &[u8], mut at: usize) -> usize {
    while matches!(bytes.get(at), Some(b' ' | b'\n' | b'\r' | b'\t')) {
        at += 1;
    }
    at
}

/// The first place at or after `at` that a string cannot simply run over: a quote, an escape, a control character.
#[must_use]
pub fn skip_plain(bytes: &[u8], at: usize) -> usize {
    let rest = bytes.get(at..).unwrap_or_default();
    at + rest.iter().position(|&byte| !PLAIN[usize::from(byte)]).unwrap_or(rest.len())
}

/// The place after the string whose opening quote is at `at`; the end of the bytes if it does not end.
#[must_use]
pub fn skip_string(bytes: &[u8], at: usize) -> usize {
    let mut at = at + 1;
    loop {
        at = skip_plain(bytes, at);
        match bytes.get(at) {
            Some(b'"') => return at + 1,
            Some(b'\\') => at += 2,
            Some(_) => at += 1,
            None => return bytes.len(),
        }
    }
}

/// The place after the value that starts at `at`, taken to be well-formed.
#[must_use]
pub fn skip_value(bytes: &[u8], at: usize) -> usize {
    let mut at = at;
    let mut depth = 0_usize;
    loop {
        match bytes.get(at) {
            Some(b'"') => at = skip_string(bytes, at),
            Some(b'[' | b'{') => {
                depth += 1;
                at += 1;
            }
            Some(b']' | b'}') if depth > 0 => {
                depth -= 1;
                at += 1;
            }
            Some(b',' | b']' | b'}') | None if depth == 0 => return at,
            None => return at,
            Some(b',' | b':' | b' ' | b'\n' | b'\r' | b'\t') => at += 1,
            Some(_) => at = skip_scalar(bytes, at),
        }
        if depth == 0 {
            return at;
        }
    }
}

fn skip_scalar(bytes: &[u8], at: usize) -> usize {
    let ends =
        |byte: &u8| matches!(byte, b',' | b']' | b'}' | b':' | b' ' | b'\n' | b'\r' | b'\t' | b'"' | b'[' | b'{');
    let rest = &bytes[at..];
    at + rest.iter().position(ends).unwrap_or(rest.len())
}

/// The text between the quotes of a well-formed string, escapes resolved.
#[must_use]
pub fn unescape(quoted: &str) -> Option<String> {
    serde_json::from_str(quoted).ok()
}

/// Follows a document and turns byte places, asked for in rising order, into lines and columns.
#[derive(Debug)]
pub struct Ruler<'a> {
    bytes: &'a [u8],
    at: usize,
    line: usize,
    column: usize,
}

impl<'a> Ruler<'a> {
    /// A ruler at the start of the document.
    #[must_use]
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0, line: 1, column: 1 }
    }

    /// Line and column of a place, both from 1; columns count characters.
    pub fn place(&mut self, at: usize) -> (usize, usize) {
        let passed = &self.bytes[self.at..at];
        let newlines = passed.iter().filter(|&&byte| byte == b'\n').count();
        let last_line = passed.iter().rposition(|&byte| byte == b'\n').map_or(0, |newline| newline + 1);
        // A byte of the form 10xxxxxx continues a character.
        let characters = passed[last_line..].iter().filter(|&&byte| byte & 0xc0 != 0x80).count();
        self.column = if newlines == 0 { self.column + characters } else { characters + 1 };
        self.line += newlines;
        self.at = at;
        (self.line, self.column)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_skipped_whole() {
        for text in ["[1, {\"a]\": \"\\\"}\"}]", "\"a\\\\\"", "-1.5e3", "true", "{}", "[[[]]]"] {
            let padded = format!("{text},");
            assert_eq!(skip_value(padded.as_bytes(), 0), text.len(), "{text}");
        }
    }

    #[test]
    fn places_count_lines_and_characters() {
        let mut ruler = Ruler::new("é1\n22é3".as_bytes());
        assert_eq!(ruler.place(2), (1, 2));
        assert_eq!(ruler.place(8), (2, 4));
    }
}
