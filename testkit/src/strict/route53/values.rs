//! What Route 53 accepts as a value of each record type.

use std::net::{Ipv4Addr, Ipv6Addr};

use super::record::valid_domain_name;

/// Types a zone may hold.
pub const TYPES: &[&str] = &[
    "A", "AAAA", "CAA", "CNAME", "DS", "HTTPS", "MX", "NAPTR", "NS", "PTR", "SOA", "SPF", "SRV",
    "SSHFP", "SVCB", "TLSA", "TXT",
];

fn fatal(problem: &str, meaning: &str, value: &str) -> String {
    format!(
        "Invalid Resource Record: 'FATAL problem: {problem} ({meaning}) encountered with '{value}''"
    )
}

/// Why this value cannot stand in a record of this type, in Route 53's words.
pub fn check(rtype: &str, value: &str) -> Result<(), String> {
    let fields: Vec<&str> = value.split_whitespace().collect();
    let name = |n: &str| {
        if valid_domain_name(n) || (n == "." && matches!(rtype, "MX" | "SRV")) {
            Ok(())
        } else {
            Err(fatal(
                "DomainLabelEmpty",
                "Domain label is empty or too long",
                value,
            ))
        }
    };
    let number = |n: &str| {
        n.parse::<u16>().map(|_| ()).map_err(|_| {
            fatal(
                "InvalidNumber",
                "Value is not a number from 0 to 65535",
                value,
            )
        })
    };
    let count = |n: usize| {
        if fields.len() == n {
            Ok(())
        } else {
            Err(fatal(
                "IncorrectNumberOfFields",
                &format!("{rtype} record has {} fields instead of {n}", fields.len()),
                value,
            ))
        }
    };
    match rtype {
        "A" => value.parse::<Ipv4Addr>().map(|_| ()).map_err(|_| {
            fatal(
                "ARRDATAIllegalIPv4Address",
                "Value is not a valid IPv4 address",
                value,
            )
        }),
        "AAAA" => value.parse::<Ipv6Addr>().map(|_| ()).map_err(|_| {
            fatal(
                "AAAARRDATAIllegalIPv6Address",
                "Value is not a valid IPv6 address",
                value,
            )
        }),
        "CNAME" | "NS" | "PTR" => {
            count(1)?;
            name(fields[0])
        }
        "MX" => {
            count(2)?;
            number(fields[0])?;
            name(fields[1])
        }
        "SRV" => {
            count(4)?;
            fields[..3].iter().try_for_each(|n| number(n))?;
            name(fields[3])
        }
        "SOA" => {
            count(7)?;
            name(fields[0])?;
            name(fields[1])
        }
        "CAA" => {
            let quoted = value.splitn(3, ' ').nth(2).unwrap_or("");
            let flags = fields.first().is_some_and(|f| f.parse::<u8>().is_ok());
            if flags && quoted.len() >= 2 && quoted.starts_with('"') && quoted.ends_with('"') {
                Ok(())
            } else {
                Err(fatal(
                    "CAARRDATA",
                    "CAA record must be: flags tag \"value\"",
                    value,
                ))
            }
        }
        "TXT" | "SPF" => text(value),
        _ if value.trim().is_empty() => Err(fatal("EmptyValue", "Value is empty", value)),
        _ => Ok(()),
    }
}

/// One or more quoted strings of at most 255 characters, separated by white space.
fn text(value: &str) -> Result<(), String> {
    let unquoted = || {
        fatal(
            "InvalidCharacterString",
            "Value should be enclosed in quotation marks",
            value,
        )
    };
    let bytes = value.as_bytes();
    let (mut i, mut strings) = (0, 0);
    loop {
        while i < bytes.len() && bytes[i].is_ascii_whitespace() {
            i += 1;
        }
        if i == bytes.len() {
            break;
        }
        if bytes[i] != b'"' {
            return Err(unquoted());
        }
        i += 1;
        let mut length = 0;
        loop {
            match bytes.get(i) {
                None => return Err(unquoted()),
                Some(b'"') => break,
                Some(b'\\') => {
                    // `\"`, `\\` or a three-digit octal code: one character each.
                    let octal = bytes
                        .get(i + 1..i + 4)
                        .is_some_and(|d| d.iter().all(|b| (b'0'..=b'7').contains(b)));
                    i += if octal { 4 } else { 2 };
                }
                Some(_) => i += 1,
            }
            length += 1;
        }
        i += 1;
        strings += 1;
        if length > 255 {
            return Err(fatal("CharacterStringTooLong", "Value is too long", value));
        }
        if bytes.get(i).is_some_and(|b| !b.is_ascii_whitespace()) {
            return Err(unquoted());
        }
    }
    if strings == 0 {
        return Err(unquoted());
    }
    if value.len() > 4000 {
        return Err(fatal(
            "TXTRDATATooLong",
            "TXT value may have 4000 characters",
            value,
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_registry_txt_must_be_quoted_and_short() {
        assert!(check("TXT", "\"heritage=external-dns,external-dns/owner=a\"").is_ok());
        assert!(check("TXT", "\"one\" \"two \\\" three\"").is_ok());
        for bad in ["plain", "\"open", "\"a\"b", "", "\"a\" b"] {
            assert!(check("TXT", bad).is_err(), "{bad}");
        }
        assert!(check("TXT", &format!("\"{}\"", "x".repeat(255))).is_ok());
        assert!(check("TXT", &format!("\"{}\"", "x".repeat(256))).is_err());
    }

    #[test]
    fn addresses_must_be_addresses() {
        assert!(check("A", "203.0.113.10").is_ok());
        for bad in [
            "203.0.113",
            "203.0.113.256",
            "203.0.113.010",
            "host.example.",
            "",
        ] {
            assert!(check("A", bad).is_err(), "{bad}");
        }
        assert!(check("AAAA", "2001:db8::1").is_ok());
        assert!(check("AAAA", "203.0.113.10").is_err());
        assert!(check("MX", "10 mail.shop.test.").is_ok());
        assert!(check("MX", "mail.shop.test.").is_err());
        assert!(check("CAA", "0 issue \"ca.example\"").is_ok());
    }
}
