//! The canonical form, checked without the program and without the writer: by the rules of hclwrite's formatter (a line's `=` stands one
//! space behind the longest name of its neighbours; a line that opens a bracket has no neighbours).

/// Places that `terraform fmt` would change, as `line: what`.
pub fn wrong(text: &str) -> Vec<String> {
    let mut out = vec![];
    let mut depth = 0usize;
    let mut chain: Vec<(usize, usize, usize)> = vec![];
    let close = |chain: &mut Vec<(usize, usize, usize)>, out: &mut Vec<String>| {
        let widest = chain.iter().map(|c| c.1).max().unwrap_or(0);
        for (line, lead, at) in chain.drain(..) {
            if at != widest + 1 {
                out.push(format!(
                    "{line}: `=` in column {at} after {lead}, its neighbours want {}",
                    widest + 1
                ));
            }
        }
    };
    for (n, line) in text.lines().enumerate() {
        let n = n + 1;
        if line.trim().is_empty() {
            if !line.is_empty() {
                out.push(format!("{n}: blanks on an empty line"));
            }
            close(&mut chain, &mut out);
            continue;
        }
        if line.ends_with(' ') || line.contains('\t') {
            out.push(format!("{n}: a blank at the end, or a tab"));
        }
        let bare = line.trim_start();
        let (opens, equals) = brackets(bare);
        let closing = bare
            .chars()
            .take_while(|c| matches!(c, ')' | ']' | '}'))
            .count();
        // A line that begins with `})` closes one level: both were opened on one line.
        let level = depth.saturating_sub(usize::from(closing > 0));
        if line.len() - bare.len() != 2 * level {
            out.push(format!(
                "{n}: indented by {}, not {}",
                line.len() - bare.len(),
                2 * level
            ));
        }
        match equals {
            Some(at) if opens == 0 && !bare.starts_with('#') => {
                let lead = bare[..at].trim_end().chars().count();
                chain.push((n, lead, bare[..at].chars().count()));
            }
            Some(at) => {
                close(&mut chain, &mut out);
                if !bare[..at].ends_with(' ') || bare[..at].ends_with("  ") {
                    out.push(format!("{n}: not one space before `=`"));
                }
            }
            None => close(&mut chain, &mut out),
        }
        // Brackets that are opened on one line are one level.
        depth = match opens {
            o if o > 0 => depth + 1,
            o if o < 0 => depth.saturating_sub(1),
            _ => depth,
        };
    }
    close(&mut chain, &mut out);
    if depth != 0 {
        out.push("a bracket stays open".into());
    }
    if !text.ends_with('\n') || text.ends_with("\n\n") {
        out.push("it does not end with one line break".into());
    }
    out
}

/// Net brackets of a line outside of strings, and where its first `=` stands.
fn brackets(line: &str) -> (i32, Option<usize>) {
    let (mut net, mut equals, mut quoted, mut escaped) = (0, None, false, false);
    if line.starts_with('#') {
        return (0, None);
    }
    for (i, c) in line.char_indices() {
        if escaped {
            escaped = false;
            continue;
        }
        match c {
            '\\' if quoted => escaped = true,
            '"' => quoted = !quoted,
            _ if quoted => {}
            '{' | '[' | '(' => net += 1,
            '}' | ']' | ')' => net -= 1,
            '=' if equals.is_none() => {
                let next = line[i + 1..].chars().next();
                let last = line[..i].chars().next_back();
                if !matches!(next, Some('=' | '>')) && !matches!(last, Some('=' | '!' | '<' | '>'))
                {
                    equals = Some(i);
                }
            }
            _ => {}
        }
    }
    (net, equals)
}

#[test]
fn the_check_sees_what_fmt_would_change() {
    let good = "a = 1\n\nb {\n  long = 1\n  c    = [1, 2]\n  d = {\n    e = \"=\"\n  }\n}\n";
    assert_eq!(wrong(good), Vec::<String>::new());
    for (bad, why) in [
        ("b {\n  long = 1\n  c = 2\n}\n", "column"),
        ("b {\n    a = 1\n}\n", "indented"),
        ("b {\n  a   = {\n  }\n}\n", "one space"),
        ("a = 1 \n", "blank"),
        ("b {\n", "stays open"),
        ("a = 1", "line break"),
    ] {
        let said = wrong(bad).join("\n");
        assert!(said.contains(why), "{bad:?}: {said}");
    }
}
