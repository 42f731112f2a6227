use super::*;

fn met(text: &[u8]) -> Option<(&'static str, String, usize, usize)> {
    check(text, 128).map(|refusal| (refusal.kind, refusal.pointer, refusal.line, refusal.column))
}

#[test]
fn good_documents_pass() {
    for text in [
        "{}",
        " [1, -0.5e-3, \"\\ud83d\\ude00\", null] \n",
        "\"a\"",
        "{\"a\":{\"a\":1},\"b\":[]}",
        "0",
        "[18446744073709551615, -9223372036854775808, 18446744073709551616.0, 1e300]",
    ] {
        assert_eq!(met(text.as_bytes()), None, "{text}");
    }
}

#[test]
fn every_refusal_names_its_place() {
    let table: [(&[u8], &str, &str, usize, usize); 22] = [
        (b"", "empty", "", 1, 1),
        (b" \n ", "empty", "", 2, 2),
        (b"\xef\xbb\xbf{}", "bom", "", 1, 1),
        (b"[\"\xff\"]", "utf8", "/0", 1, 3),
        (b"{} \xff", "utf8", "", 1, 4),
        (b"[1,]", "syntax", "/1", 1, 4),
        (b"[1 2]", "syntax", "/0", 1, 4),
        (b"{\"a\": tru}", "syntax", "/a", 1, 7),
        (b"{a: 1}", "syntax", "", 1, 2),
        (b"[01]", "syntax", "/0", 1, 3),
        (b"[1.]", "syntax", "/0", 1, 4),
        (b"[\"\\ud800\"]", "syntax", "/0", 1, 3),
        (b"[\"a\nb\"]", "syntax", "/0", 1, 4),
        (b"{\"a\":1,\n \"\\u0061\":2}", "duplicate-key", "/a", 2, 2),
        (b"[{}, {\"x~/\": [1, NaN]}]", "nan", "/1/x~0~1/1", 1, 18),
        (b"[-Infinity]", "nan", "/0", 1, 2),
        (b"[1e999]", "number", "/0", 1, 2),
        (b"[18446744073709551616]", "number", "/0", 1, 2),
        (b"[-9223372036854775809]", "number", "/0", 1, 2),
        (b"{} {}", "trailing", "", 1, 4),
        (b"[", "syntax", "/0", 1, 2),
        (b"]", "syntax", "", 1, 1),
    ];
    for (text, kind, pointer, line, column) in table {
        let expected = Some((kind, pointer.to_owned(), line, column));
        assert_eq!(met(text), expected, "{}", String::from_utf8_lossy(text));
    }
}

#[test]
fn depth_is_counted_and_never_recursed_into() {
    let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    assert_eq!(met(nested(128).as_bytes()), None);
    assert_eq!(met(nested(129).as_bytes()).unwrap().0, "depth");
    assert_eq!(met(&vec![b'['; 10_000_000]).unwrap().0, "depth");
}

#[test]
fn a_duplicate_is_found_among_many_keys() {
    let mut text: Vec<String> = (0..1_000).map(|number| format!("\"k{number}\":0")).collect();
    assert_eq!(met(format!("{{{}}}", text.join(",")).as_bytes()), None);
    text.push("\"k7\":1".to_owned());
    let (kind, pointer, ..) = met(format!("{{{}}}", text.join(",")).as_bytes()).unwrap();
    assert_eq!((kind, pointer.as_str()), ("duplicate-key", "/k7"));
}
