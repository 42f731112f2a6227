//! Strings, numbers and words of a document that is checked.

use super::{Reader, Step};
use crate::scan::skip_plain;

impl Reader<'_> {
    pub(super) fn string(&mut self) -> Step<()> {
        let mut at = self.at + 1;
        loop {
            at = skip_plain(self.bytes, at);
            match self.bytes.get(at) {
                Some(b'"') => break,
                Some(b'\\') => at = self.escape(at)?,
                _ => return Err(("syntax", at)),
            }
        }
        self.at = at + 1;
        Ok(())
    }

    /// The place after the escape at `at`; a surrogate must come as a pair.
    fn escape(&self, at: usize) -> Step<usize> {
        match self.bytes.get(at + 1) {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => Ok(at + 2),
            Some(b'u') => match self.hex(at + 2)? {
                0xdc00..=0xdfff => Err(("syntax", at)),
                0xd800..=0xdbff => match self.bytes.get(at + 6..at + 8) {
                    Some(b"\\u") if (0xdc00..=0xdfff).contains(&self.hex(at + 8)?) => Ok(at + 12),
                    Some(_) => Err(("syntax", at)),
                    None => Err(("syntax", self.bytes.len())),
                },
                _ => Ok(at + 6),
            },
            Some(_) => Err(("syntax", at)),
            None => Err(("syntax", self.bytes.len())),
        }
    }

    fn hex(&self, at: usize) -> Step<u32> {
        let digits = self.bytes.get(at..at + 4).ok_or(("syntax", self.bytes.len()))?;
        digits.iter().try_fold(0, |value, byte| {
            let digit = char::from(*byte).to_digit(16).ok_or(("syntax", at))?;
            Ok(value * 16 + digit)
        })
    }

    pub(super) fn number(&mut self) -> Step<()> {
        let start = self.at;
        self.at += usize::from(self.peek() == Some(b'-'));
        match self.peek() {
            Some(b'0') => self.at += 1,
            Some(b'1'..=b'9') => self.digits()?,
            Some(b'I') => {
                return self.not_a_number("Infinity").map_err(|(kind, at)| (kind, at - usize::from(kind == "nan")))
            }
            _ => return Err(("syntax", self.at)),
        }
        let whole = self.at;
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.digits()?;
        }
        let exponent = matches!(self.peek(), Some(b'e' | b'E'));
        if exponent {
            self.at += 1;
            self.at += usize::from(matches!(self.peek(), Some(b'+' | b'-')));
            self.digits()?;
        }
        // A double has 308 digits before its point at most.
        let long = self.at - start > 300;
        if (exponent || long) && self.text[start..self.at].parse::<f64>().map_or(true, |number| !number.is_finite()) {
            return Err(("number", start));
        }
        // regorus would take a larger integer for the nearest double, and so two different ones for the same.
        let integer = &self.text[start..self.at];
        if self.at == whole && integer.len() > 18 && integer.parse::<i64>().is_err() && integer.parse::<u64>().is_err()
        {
            return Err(("number", start));
        }
        Ok(())
    }

    fn digits(&mut self) -> Step<()> {
        let start = self.at;
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.at += 1;
        }
        if self.at == start {
            return Err(("syntax", start));
        }
        Ok(())
    }

    pub(super) fn word(&mut self, word: &str) -> Step<()> {
        if !self.text[self.at..].starts_with(word) {
            return Err(("syntax", self.at));
        }
        self.at += word.len();
        Ok(())
    }

    pub(super) fn not_a_number(&mut self, word: &str) -> Step<()> {
        let start = self.at;
        self.word(word)?;
        Err(("nan", start))
    }
}
