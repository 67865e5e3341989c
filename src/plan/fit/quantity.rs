//! Kubernetes quantities as numbers.

use serde_json::Value;

/// Milli-CPU of a quantity (`250m`, `1`, `0.5`, a bare number). `None`: not a quantity.
pub fn milli(v: &Value) -> Option<u64> {
    Some((number(v)? * 1000.0).ceil() as u64)
}

/// MiB of a quantity (`512Mi`, `1G`, `128974848`), rounded up. `None`: not a quantity.
pub fn mib(v: &Value) -> Option<u64> {
    Some((number(v)? / 1024f64.powi(2)).ceil() as u64)
}

fn number(v: &Value) -> Option<f64> {
    let t = v
        .as_str()
        .map(String::from)
        .or_else(|| v.is_number().then(|| v.to_string()))?;
    let t = t.trim();
    // `1e3` is a number, `1E` is an exa: a suffix is what is left when no number can be read.
    if let Ok(n) = t.parse::<f64>() {
        return (n.is_finite() && n >= 0.0).then_some(n);
    }
    let end = t.find(|c: char| c.is_ascii_alphabetic())?;
    let n: f64 = t[..end].parse().ok().filter(|n| *n >= 0.0)?;
    Some(
        n * match &t[end..] {
            "n" => 1e-9,
            "u" => 1e-6,
            "m" => 1e-3,
            "k" => 1e3,
            "M" => 1e6,
            "G" => 1e9,
            "T" => 1e12,
            "P" => 1e15,
            "Ki" => 1024.0,
            "Mi" => 1024f64.powi(2),
            "Gi" => 1024f64.powi(3),
            "Ti" => 1024f64.powi(4),
            "Pi" => 1024f64.powi(5),
            _ => return None,
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn quantities_are_read_as_the_scheduler_reads_them() {
        assert_eq!(milli(&json!("250m")), Some(250));
        assert_eq!(milli(&json!("0.5")), Some(500));
        assert_eq!(milli(&json!(2)), Some(2000));
        assert_eq!(milli(&json!("1e1")), Some(10_000));
        assert_eq!(mib(&json!("512Mi")), Some(512));
        assert_eq!(mib(&json!("1G")), Some(954));
        assert_eq!(mib(&json!(134_217_728)), Some(128));
        assert_eq!(mib(&json!("1.5Gi")), Some(1536));
        for bad in [
            json!("lots"),
            json!("-1"),
            json!("1Zi"),
            json!(null),
            json!(""),
        ] {
            assert_eq!(mib(&bad), None, "{bad}");
        }
    }
}
