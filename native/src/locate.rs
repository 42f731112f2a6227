//! Lines and columns of many values of one document, in one pass.

use crate::scan::{skip_space, skip_string, skip_value, unescape, Ruler};
use std::collections::HashMap;

/// A part of the document that some pointer names or passes.
#[derive(Default)]
struct Node {
    keys: HashMap<String, usize>,
    wanted: Vec<usize>,
}

/// An array or object that is being passed: the node that stands for it, and the next index of an array.
struct Frame {
    node: usize,
    index: Option<usize>,
}

/// Line and column (from 1, columns in characters) of the value at each JSON Pointer; `None` where there is none.
///
/// The document is taken to be good (see [`crate::check`]); of a duplicate key the last value counts.
#[must_use]
pub fn locate(document: &[u8], pointers: &[String]) -> Vec<Option<(usize, usize)>> {
    let nodes = tree(pointers);
    let mut found = vec![None; pointers.len()];
    let mut ruler = Ruler::new(document);
    let mut frames = Vec::new();
    let mut at = arrive(document, skip_space(document, 0), 0, &nodes, &mut frames, &mut ruler, &mut found);
    while let Some(frame) = frames.last_mut() {
        at = skip_space(document, at);
        match document.get(at) {
            Some(b',') => at = skip_space(document, at + 1),
            Some(b']' | b'}') => {
                frames.pop();
                at += 1;
                continue;
            }
            Some(_) => (),
            None => break,
        }
        let (child, value) = member(document, at, frame, &nodes);
        at = match child {
            Some(child) => arrive(document, value, child, &nodes, &mut frames, &mut ruler, &mut found),
            None => skip_value(document, value).max(value + usize::from(value == at)),
        };
    }
    found
}

/// The node of the member that starts at `at`, if any, and the place of its value.
fn member(document: &[u8], at: usize, frame: &mut Frame, nodes: &[Node]) -> (Option<usize>, usize) {
    let keys = &nodes[frame.node].keys;
    let Some(index) = &mut frame.index else {
        let end = skip_string(document, at);
        let colon = skip_space(document, end);
        let value = skip_space(document, colon + 1);
        let key = std::str::from_utf8(document.get(at..end).unwrap_or_default()).unwrap_or_default();
        let child = match key.contains('\\') {
            true => unescape(key).and_then(|key| keys.get(&key)),
            false => key.get(1..key.len().saturating_sub(1)).and_then(|key| keys.get(key)),
        };
        return (child.copied(), value);
    };
    let child = keys.get(index.to_string().as_str()).copied();
    *index += 1;
    (child, at)
}

/// Notes the place of a value that is asked for, and enters it if parts of it are; gives the place to go on from.
fn arrive(
    document: &[u8],
    at: usize,
    node: usize,
    nodes: &[Node],
    frames: &mut Vec<Frame>,
    ruler: &mut Ruler<'_>,
    found: &mut [Option<(usize, usize)>],
) -> usize {
    if at >= document.len() {
        return at;
    }
    if !nodes[node].wanted.is_empty() {
        let place = ruler.place(at);
        nodes[node].wanted.iter().for_each(|&wanted| found[wanted] = Some(place));
    }
    let index = match document[at] {
        b'{' if !nodes[node].keys.is_empty() => None,
        b'[' if !nodes[node].keys.is_empty() => Some(0),
        _ => return skip_value(document, at),
    };
    frames.push(Frame { node, index });
    at + 1
}

/// Groups the pointers by their prefixes; the first node stands for the whole document.
fn tree(pointers: &[String]) -> Vec<Node> {
    let mut nodes = vec![Node::default()];
    for (place, pointer) in pointers.iter().enumerate() {
        if !(pointer.is_empty() || pointer.starts_with('/')) {
            continue;
        }
        let mut node = 0;
        for token in pointer.split('/').skip(1) {
            let fresh = nodes.len();
            node = *nodes[node].keys.entry(token.replace("~1", "/").replace("~0", "~")).or_insert(fresh);
            if node == fresh {
                nodes.push(Node::default());
            }
        }
        nodes[node].wanted.push(place);
    }
    nodes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pointers_find_their_values() {
        let document = "{\n \"a\": [10, {\"b/c\": \"é\", \"~\": 1}],\n \"\\u0062\": {} , \"\": 2}";
        let table = [
            ("", Some((1, 1))),
            ("/a", Some((2, 7))),
            ("/a/0", Some((2, 8))),
            ("/a/1/b~1c", Some((2, 20))),
            ("/a/1/~0", Some((2, 30))),
            ("/a/01", None),
            ("/a/2", None),
            ("/b", Some((3, 12))),
            ("/", Some((3, 21))),
            ("a", None),
        ];
        let pointers: Vec<String> = table.iter().map(|row| row.0.to_owned()).collect();
        let expected: Vec<_> = table.iter().map(|row| row.1).collect();
        assert_eq!(locate(document.as_bytes(), &pointers), expected);
    }

    #[test]
    fn a_broken_document_ends_the_search() {
        for text in ["", "[", "{\"a\"", "{\"a\": [1", "{\"a\" 1", "[1 1 1", "[}", "{]", "[:", "{:::"] {
            let places = locate(text.as_bytes(), &["/a/7".to_owned(), "/9".to_owned()]);
            assert_eq!(places, [None, None], "{text}");
        }
    }
}
