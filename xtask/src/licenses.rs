//! Licences, sources and duplicate versions of all dependencies, by the lists of `deny.toml`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde::Deserialize;
use serde_json::Value;

use crate::test_programs::cargo;

const CRATES_IO: &str = "registry+https://github.com/rust-lang/crates.io-index";

#[derive(Deserialize)]
struct Lists {
    licenses: Licenses,
    bans: Bans,
}

#[derive(Deserialize)]
struct Licenses {
    allow: BTreeSet<String>,
    #[serde(default)]
    exceptions: Vec<Exception>,
}

/// Licences that one crate may have besides those of all.
#[derive(Deserialize)]
struct Exception {
    allow: BTreeSet<String>,
    #[serde(rename = "crate")]
    package: String,
}

impl Licenses {
    /// The licences that a crate may have.
    fn of(&self, package: &str) -> BTreeSet<String> {
        let own = self.exceptions.iter();
        let own = own.filter(|exception| exception.package == package);
        let own = own.flat_map(|exception| &exception.allow);
        self.allow.iter().chain(own).cloned().collect()
    }

    /// The exceptions for crates that do not occur.
    fn unused<'l>(
        &'l self,
        versions: &'l BTreeMap<String, BTreeSet<String>>,
    ) -> impl Iterator<Item = String> + 'l {
        let unused = self.exceptions.iter();
        let unused = unused.filter(|exception| !versions.contains_key(&exception.package));
        unused.map(|Exception { package, .. }| {
            format!("deny.toml has an exception for {package}, which does not occur")
        })
    }
}

#[derive(Deserialize)]
struct Bans {
    skip: Vec<Skipped>,
}

/// A version of a crate that may occur next to another.
#[derive(Deserialize)]
struct Skipped {
    /// `NAME@VERSION`.
    #[serde(rename = "crate")]
    package: String,
}

/// Everything that the lists do not allow, and entries of the lists without use.
pub fn faults(root: &Path) -> Result<Vec<String>, String> {
    let text =
        std::fs::read_to_string(root.join("deny.toml")).map_err(|e| format!("deny.toml: {e}"))?;
    let lists: Lists = toml::from_str(&text).map_err(|e| format!("deny.toml: {e}"))?;
    let output = cargo(root, &["metadata", "--format-version=1", "--all-features"])
        .output()
        .map_err(|e| format!("cargo metadata: {e}"))?;
    if !output.status.success() {
        return Err(format!(
            "cargo metadata: {}",
            String::from_utf8_lossy(&output.stderr).trim()
        ));
    }
    let metadata: Value =
        serde_json::from_slice(&output.stdout).map_err(|e| format!("cargo metadata: {e}"))?;
    let packages = metadata["packages"]
        .as_array()
        .ok_or("cargo metadata: no packages")?;
    let text = |package: &Value, key: &str| package[key].as_str().unwrap_or_default().to_owned();
    let (mut found, mut versions) = (Vec::new(), BTreeMap::<String, BTreeSet<String>>::new());
    for package in packages {
        let (name, version, license, source) = (
            text(package, "name"),
            text(package, "version"),
            text(package, "license"),
            text(package, "source"),
        );
        if !is_allowed(&license, &lists.licenses.of(&name)) {
            found.push(format!(
                "{name} {version}: licence {license:?} is not allowed by deny.toml"
            ));
        }
        if !source.is_empty() && source != CRATES_IO {
            found.push(format!("{name} {version}: source {source}"));
        }
        versions.entry(name).or_default().insert(version);
    }
    found.extend(lists.licenses.unused(&versions));
    found.extend(duplicates(versions, &lists.bans.skip));
    Ok(found)
}

/// Crates in more than one version that is not listed, and listed versions that do not occur.
fn duplicates(
    mut versions: BTreeMap<String, BTreeSet<String>>,
    skipped: &[Skipped],
) -> Vec<String> {
    let mut found = Vec::new();
    for Skipped { package } in skipped {
        let is_there = package.split_once('@').is_some_and(|(name, version)| {
            versions
                .get_mut(name)
                .is_some_and(|known| known.len() > 1 && known.remove(version))
        });
        found.extend((!is_there).then(|| {
            format!("deny.toml lists {package}, which does not occur next to another version")
        }));
    }
    let several = versions
        .into_iter()
        .filter(|(_, versions)| versions.len() > 1);
    found.extend(several.map(|(name, versions)| format!("{name} occurs in the versions {versions:?}; list all but one in deny.toml with the reason")));
    found
}

/// Whether an SPDX expression can be met by allowed licences.
fn is_allowed(expression: &str, allowed: &BTreeSet<String>) -> bool {
    let spaced = expression
        .replace('(', " ( ")
        .replace(')', " ) ")
        .replace('/', " OR ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut rest = words.as_slice();
    any(&mut rest, allowed) && rest.is_empty()
}

/// Alternatives.
fn any(rest: &mut &[&str], allowed: &BTreeSet<String>) -> bool {
    let mut is_met = all(rest, allowed);
    while let ["OR", more @ ..] = *rest {
        *rest = more;
        is_met |= all(rest, allowed);
    }
    is_met
}

/// Licences that hold together.
fn all(rest: &mut &[&str], allowed: &BTreeSet<String>) -> bool {
    let mut is_met = one(rest, allowed);
    while let ["AND", more @ ..] = *rest {
        *rest = more;
        is_met &= one(rest, allowed);
    }
    is_met
}

/// A licence, with its exception if it has one, or an expression in parentheses.
fn one(rest: &mut &[&str], allowed: &BTreeSet<String>) -> bool {
    match **rest {
        ["(", ref more @ ..] => {
            *rest = more;
            let is_met = any(rest, allowed);
            let closes = rest.first() == Some(&")");
            *rest = rest.get(1..).unwrap_or_default();
            is_met && closes
        }
        [license, "WITH", exception, ref more @ ..] => {
            *rest = more;
            allowed.contains(&format!("{license} WITH {exception}"))
        }
        [license, ref more @ ..] => {
            *rest = more;
            allowed.contains(license)
        }
        [] => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_expression_is_met_by_one_alternative_and_all_that_hold_together() {
        let allowed = BTreeSet::from(["MIT", "Zlib", "Unicode-3.0"].map(str::to_owned));
        for expression in [
            "MIT",
            "GPL-3.0 OR MIT",
            "MIT/Apache-2.0",
            "(MIT OR Apache-2.0) AND Unicode-3.0",
            "Apache-2.0 WITH LLVM-exception OR Zlib",
        ] {
            assert!(is_allowed(expression, &allowed), "{expression}");
        }
        for expression in [
            "",
            "GPL-3.0",
            "MIT AND GPL-3.0",
            "(MIT OR Apache-2.0) AND CC0-1.0",
            "Apache-2.0 WITH LLVM-exception",
            "MIT )",
            "(MIT",
        ] {
            assert!(!is_allowed(expression, &allowed), "{expression}");
        }
    }

    #[test]
    fn an_exception_is_for_one_crate_that_occurs() {
        let text = "allow = [\"MIT\"]\nexceptions = [{ allow = [\"MPL-2.0\"], crate = \"a\" }]";
        let licenses: Licenses = toml::from_str(text).expect("lists");
        let is_allowed = |package| is_allowed("MPL-2.0 AND MIT", &licenses.of(package));
        assert!(is_allowed("a") && !is_allowed("b"));
        let versions = |name: &str| BTreeMap::from([(name.to_owned(), BTreeSet::new())]);
        assert_eq!(licenses.unused(&versions("a")).count(), 0);
        assert_eq!(licenses.unused(&versions("b")).count(), 1);
    }

    #[test]
    fn duplicates_are_listed_and_the_list_has_nothing_else() {
        let versions = || {
            BTreeMap::from([
                (
                    "a".to_owned(),
                    BTreeSet::from(["1".to_owned(), "2".to_owned()]),
                ),
                ("b".to_owned(), BTreeSet::from(["1".to_owned()])),
            ])
        };
        let skip = |package: &str| Skipped {
            package: package.to_owned(),
        };
        assert!(duplicates(versions(), &[skip("a@1")]).is_empty());
        assert!(
            duplicates(versions(), &[])[0].starts_with("a occurs in the versions {\"1\", \"2\"}")
        );
        for unused in ["a@3", "b@1", "c@1", "a"] {
            assert!(
                duplicates(versions(), &[skip("a@1"), skip(unused)])[0].contains(unused),
                "{unused}"
            );
        }
    }
}
