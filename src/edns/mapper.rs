//! Names of registry TXT records (externaldns.md 1.3, 1.4).

use super::config::Config;

/// Placeholder of the record type in an affix (0.12 and later).
const TEMPLATE: &str = "%{record_type}";

/// Record types that a TXT name can carry, by version: later ones mis-read more host names (trap 17).
fn types_in_names(config: &Config) -> &'static [&'static str] {
    if config.version.at_least(18, 0) {
        &[
            "a", "aaaa", "cname", "ns", "mx", "ptr", "srv", "naptr", "txt", "dname",
        ]
    } else if config.version.at_least(14, 0) {
        &["a", "aaaa", "cname", "ns", "mx"]
    } else {
        &["a", "aaaa", "cname", "ns"]
    }
}

fn has_template(config: &Config) -> bool {
    config.prefix.contains(TEMPLATE) || config.suffix.contains(TEMPLATE)
}

fn first_label(name: &str, config: &Config) -> (String, Option<String>) {
    let (label, rest) = match name.split_once('.') {
        Some((l, r)) => (l, Some(r.to_string())),
        None => (name, None),
    };
    let label = if label == "*" && !config.wildcard.is_empty() {
        config.wildcard.clone()
    } else {
        label.to_string()
    };
    (label, rest)
}

fn join(label: String, rest: Option<String>) -> String {
    match rest {
        Some(r) => format!("{label}.{r}"),
        None => label,
    }
}

/// Name of the legacy TXT (no type) of a name without final dot.
pub(super) fn legacy(name: &str, config: &Config) -> String {
    let (label, rest) = first_label(name, config);
    join(
        format!(
            "{}{label}{}",
            config.prefix.replace(TEMPLATE, ""),
            config.suffix.replace(TEMPLATE, "")
        ),
        rest,
    )
}

/// Name of the typed TXT; `word` is `a`, `cname`, `aaaa`.
pub(super) fn typed(name: &str, word: &str, config: &Config) -> String {
    let (label, rest) = first_label(name, config);
    let label = if has_template(config) {
        label
    } else {
        format!("{word}-{label}")
    };
    join(
        format!(
            "{}{label}{}",
            config.prefix.replace(TEMPLATE, word),
            config.suffix.replace(TEMPLATE, word)
        ),
        rest,
    )
}

/// What a TXT name says: the endpoint's name (with the wildcard still replaced) and the type word, if any. `None` when the affix does not match.
pub(super) fn endpoint_of(txt_name: &str, config: &Config) -> Option<(String, Option<String>)> {
    let name = txt_name.to_lowercase();
    // Up to 0.11 no type is ever read from a name.
    let typed_names = config.version.at_least(12, 0);
    if config.suffix.is_empty() {
        return drop_affix(&name, config, typed_names);
    }
    let dots = config.suffix.matches('.').count();
    let parts: Vec<&str> = name.splitn(2 + dots, '.').collect();
    if parts.len() < 2 + dots {
        return None;
    }
    let (base, word) = drop_affix(&parts[..1 + dots].join("."), config, typed_names)?;
    Some((format!("{base}.{}", parts[1 + dots]), word))
}

fn drop_affix(name: &str, config: &Config, typed_names: bool) -> Option<(String, Option<String>)> {
    let is_suffix = !config.suffix.is_empty();
    let strip = |affix: &str| -> Option<String> {
        if is_suffix {
            name.strip_suffix(affix).map(String::from)
        } else {
            name.strip_prefix(affix).map(String::from)
        }
    };
    let affix = if is_suffix {
        &config.suffix
    } else {
        &config.prefix
    };
    if typed_names && has_template(config) {
        for word in types_in_names(config) {
            if let Some(base) = strip(&affix.replace(TEMPLATE, word)) {
                return Some((base, Some((*word).into())));
            }
        }
    }
    let base = strip(&affix.replace(TEMPLATE, ""))?;
    if !typed_names {
        return Some((base, None));
    }
    let head = base.split('-').next().unwrap_or("");
    if types_in_names(config).contains(&head)
        && let Some(rest) = base.strip_prefix(&format!("{head}-"))
    {
        return Some((rest.to_string(), Some(head.to_string())));
    }
    Some((base, None))
}
