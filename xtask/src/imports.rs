//! Imports only go down: crates depend on crates of lower rows, and sibling modules have no import
//! cycle.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use syn::visit::{self, Visit};

use crate::sources::{crates, files_with_ending};
use crate::test_programs::cargo;

/// The crates, lowest first; those of one row do not depend on each other.
const ROWS: &[&[&str]] = &[
    &["source-revision"],
    &["naga-ptx"],
    &["tectum"],
    &["tectum-programs", "tectum-equations"],
    &["tectum-graph"],
    &["tectum-bench"],
    &[
        "tectum-onnx",
        "tectum-spiking",
        "tectum-field",
        "tectum-transformer",
    ],
    &["tectum-control"],
    &["tectum-link"],
    &["tectum-cli", "tectum-py"],
];

/// A module's path from the crate's root.
type Module = Vec<String>;

/// Dependencies that do not go down, and cycles of modules.
pub fn faults(root: &Path) -> Result<Vec<String>, String> {
    let mut found = Vec::new();
    for name in crates(root)? {
        found.extend(dependencies(root, &name)?);
        let modules = Modules::read(root, &name)?;
        found.extend(
            modules
                .circles()
                .into_iter()
                .map(|circle| format!("crates/{name}/src: {circle}")),
        );
    }
    Ok(found)
}

/// What a user of one part must not compile, by crate, without its default features.
const LIGHT: &[(&str, &[&str])] = &[
    (
        "tectum-spiking",
        &[
            "wgpu",
            "cudarc",
            "naga-ptx",
            "tokenizers",
            "mcap",
            "tectum-bench",
            "tectum-graph",
        ],
    ),
    (
        "tectum-field",
        &[
            "wgpu",
            "cudarc",
            "naga-ptx",
            "tokenizers",
            "mcap",
            "tectum-bench",
            "tectum-graph",
        ],
    ),
    (
        "tectum-transformer",
        &[
            "wgpu",
            "cudarc",
            "naga-ptx",
            "tokenizers",
            "mcap",
            "tectum-bench",
            "tectum-spiking",
            "gemm-common",
        ],
    ),
    (
        "tectum-control",
        &[
            "wgpu",
            "cudarc",
            "naga-ptx",
            "tokenizers",
            "mcap",
            "gemm-common",
            "tectum-bench",
            "tectum-spiking",
            "tectum-field",
        ],
    ),
];

/// Maximum number of crates that a user of a part compiles, itself included, without its default
/// features.
const MAX_CRATES: &[(&str, usize)] = &[("tectum-graph", 60)];

/// Crates that a user of one part compiles and that belong to another, and parts that compile too
/// many.
pub fn heavy(root: &Path) -> Result<Vec<String>, String> {
    let mut found = Vec::new();
    for (name, heavy) in LIGHT {
        let compiled = compiled(root, name, "normal")?;
        let has = |heavy: &str| compiled.iter().any(|(name, _)| name == heavy);
        found.extend(
            heavy
                .iter()
                .filter(|heavy| has(heavy))
                .map(|heavy| format!("{name} without default features compiles {heavy}")),
        );
    }
    for (name, most) in MAX_CRATES {
        let count = compiled(root, name, "normal,build")?.len();
        found.extend((count > *most).then(|| {
            format!("{name} without default features compiles {count} crates, more than {most}")
        }));
    }
    Ok(found)
}

/// Name and version of each crate that is compiled for one, itself included, without its default
/// features.
fn compiled(root: &Path, name: &str, edges: &str) -> Result<BTreeSet<(String, String)>, String> {
    let arguments = [
        "tree",
        "-p",
        name,
        "--no-default-features",
        "-e",
        edges,
        "--prefix",
        "none",
        "--format",
        "{p}",
    ];
    let output = cargo(root, &arguments)
        .output()
        .map_err(|e| format!("cargo tree: {e}"))?;
    if !output.status.success() {
        return Err(format!(
            "cargo tree -p {name}: {}",
            String::from_utf8_lossy(&output.stderr)
        ));
    }
    let text = String::from_utf8_lossy(&output.stdout);
    let crates = text.lines().map(|line| {
        let mut words = line.split(' ').map(str::to_owned);
        (
            words.next().unwrap_or_default(),
            words.next().unwrap_or_default(),
        )
    });
    Ok(crates.collect())
}

/// Dependencies of a crate on crates of its own row or a higher one.
fn dependencies(root: &Path, name: &str) -> Result<Vec<String>, String> {
    let path = format!("crates/{name}/Cargo.toml");
    let text = std::fs::read_to_string(root.join(&path)).map_err(|e| format!("{path}: {e}"))?;
    let manifest: toml::Table = toml::from_str(&text).map_err(|e| format!("{path}: {e}"))?;
    let row = |name: &str| ROWS.iter().position(|row| row.contains(&name));
    let Some(own) = row(name) else {
        return Ok(vec![format!(
            "{path}: {name} has no row in xtask/src/imports.rs"
        )]);
    };
    let used = manifest
        .get("dependencies")
        .and_then(toml::Value::as_table)
        .into_iter()
        .flat_map(toml::Table::keys);
    Ok(used
        .filter(|used| row(used).is_some_and(|row| row >= own))
        .map(|used| format!("{path}: {name} depends on {used}, which is not below it"))
        .collect())
}

/// The modules of a crate outside tests.
struct Modules {
    /// What each imports, as paths from the crate's root that may end in an item.
    imports: BTreeMap<Module, Vec<Module>>,
    /// Items that a module re-exports, and from where.
    exports: BTreeMap<(Module, String), Module>,
}

impl Modules {
    fn read(root: &Path, name: &str) -> Result<Self, String> {
        let source = root.join("crates").join(name).join("src");
        let mut files = BTreeMap::new();
        for path in files_with_ending(&source, "rs")? {
            let relative = path
                .strip_prefix(&source)
                .map_err(|e| e.to_string())?
                .with_extension("");
            let mut module: Module = relative
                .iter()
                .map(|part| part.to_string_lossy().into_owned())
                .collect();
            if module == ["lib"] || module == ["main"] {
                module.clear();
            }
            let text =
                std::fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
            files.insert(
                module,
                syn::parse_file(&text).map_err(|e| format!("{}: {e}", path.display()))?,
            );
        }
        let of_tests: BTreeSet<Module> = files
            .iter()
            .flat_map(|(module, file)| {
                file.items
                    .iter()
                    .filter_map(move |item| test_module(module, item))
            })
            .collect();
        let is_test = |module: &Module| {
            (1..=module.len())
                .any(|len| of_tests.contains(&module[..len]) || module[len - 1] == "tests")
        };
        let mut modules = Self {
            imports: BTreeMap::new(),
            exports: BTreeMap::new(),
        };
        for (module, file) in files.iter().filter(|(module, _)| !is_test(module)) {
            let mut reader = Reader {
                module,
                paths: Vec::new(),
                exports: Vec::new(),
            };
            reader.visit_file(file);
            modules.imports.insert(module.clone(), reader.paths);
            modules.exports.extend(
                reader
                    .exports
                    .into_iter()
                    .map(|(item, from)| ((module.clone(), item), from)),
            );
        }
        Ok(modules)
    }

    /// The module that defines what a path names; re-exports are followed.
    fn owner(&self, path: &[String]) -> Module {
        let mut path = path.to_vec();
        for _ in 0..8 {
            let len = (0..=path.len())
                .rev()
                .find(|len| self.imports.contains_key(&path[..*len]))
                .unwrap_or(0);
            match path
                .get(len)
                .and_then(|item| self.exports.get(&(path[..len].to_vec(), item.clone())))
            {
                Some(from) if *from != path => path = [from.as_slice(), &path[len + 1..]].concat(),
                _ => return path[..len].to_vec(),
            }
        }
        Module::new()
    }

    /// Groups of modules with one parent that import each other in a cycle.
    fn circles(&self) -> Vec<String> {
        let mut edges: BTreeMap<Module, BTreeMap<String, BTreeMap<String, String>>> =
            BTreeMap::new();
        for (module, paths) in &self.imports {
            for path in paths {
                let owner = self.owner(path);
                let shared = module
                    .iter()
                    .zip(&owner)
                    .take_while(|(a, b)| a == b)
                    .count();
                if let (Some(from), Some(to)) = (module.get(shared), owner.get(shared)) {
                    edges
                        .entry(module[..shared].to_vec())
                        .or_default()
                        .entry(from.clone())
                        .or_default()
                        .insert(to.clone(), path.join("::"));
                }
            }
        }
        let mut found = Vec::new();
        for (parent, edges) in edges {
            let reach = |from: &str| {
                let (mut seen, mut open) = (BTreeSet::new(), vec![from.to_owned()]);
                while let Some(next) = open.pop() {
                    let more = edges.get(&next).into_iter().flat_map(BTreeMap::keys);
                    open.extend(
                        more.filter(|to| seen.insert((*to).clone()))
                            .cloned()
                            .collect::<Vec<_>>(),
                    );
                }
                seen
            };
            for (from, to) in &edges {
                for (to, path) in to.iter().filter(|(to, _)| reach(to).contains(from)) {
                    found.push(format!(
                        "{}: {from} imports {path}, and {to} imports {from} in turn",
                        parent.join("/")
                    ));
                }
            }
        }
        found
    }
}

/// A module that is compiled for tests alone.
fn test_module(parent: &Module, item: &syn::Item) -> Option<Module> {
    let syn::Item::Mod(module) = item else {
        return None;
    };
    is_for_tests(&module.attrs).then(|| [parent.as_slice(), &[module.ident.to_string()]].concat())
}

fn is_for_tests(attributes: &[syn::Attribute]) -> bool {
    let is_test = |attribute: &syn::Attribute| {
        attribute.path().is_ident("cfg")
            && attribute
                .parse_args::<syn::Path>()
                .is_ok_and(|path| path.is_ident("test"))
    };
    attributes.iter().any(is_test)
}

/// Collects the paths of a file.
struct Reader<'m> {
    module: &'m Module,
    paths: Vec<Module>,
    exports: Vec<(String, Module)>,
}

impl Reader<'_> {
    /// A path from the crate's root; none for paths into other crates, except that the first name
    /// may be a child module.
    fn absolute(&self, names: &[String]) -> Option<Module> {
        let mut base = self.module.clone();
        let mut rest = names;
        match names.first()?.as_str() {
            "crate" => base.clear(),
            "self" => {}
            "super" => {
                base.pop();
            }
            _ => return Some([base.as_slice(), names].concat()),
        }
        rest = &rest[1..];
        while rest.first().is_some_and(|name| name == "super") {
            base.pop();
            rest = &rest[1..];
        }
        Some([base.as_slice(), rest].concat())
    }

    fn add(&mut self, names: &[String]) {
        self.paths.extend(self.absolute(names));
    }

    fn tree(&mut self, before: &[String], tree: &syn::UseTree, is_export: bool) {
        let with = |name: &syn::Ident| [before, &[name.to_string()]].concat();
        let (path, alias) = match tree {
            syn::UseTree::Path(path) => {
                return self.tree(&with(&path.ident), &path.tree, is_export);
            }
            syn::UseTree::Group(group) => {
                return group
                    .items
                    .iter()
                    .for_each(|tree| self.tree(before, tree, is_export));
            }
            syn::UseTree::Glob(_) => return self.add(before),
            syn::UseTree::Name(name) if name.ident == "self" => {
                (before.to_vec(), before.last().cloned())
            }
            syn::UseTree::Name(name) => (with(&name.ident), Some(name.ident.to_string())),
            syn::UseTree::Rename(rename) => (with(&rename.ident), Some(rename.rename.to_string())),
        };
        self.add(&path);
        if let (true, Some(alias), Some(from)) = (is_export, alias, self.absolute(&path)) {
            self.exports.push((alias, from));
        }
    }
}

impl<'ast> Visit<'ast> for Reader<'_> {
    fn visit_item(&mut self, item: &'ast syn::Item) {
        let attributes = match item {
            syn::Item::Mod(item) => &item.attrs,
            syn::Item::Fn(item) => &item.attrs,
            syn::Item::Impl(item) => &item.attrs,
            syn::Item::Use(item) => &item.attrs,
            syn::Item::Const(item) => &item.attrs,
            syn::Item::Struct(item) => &item.attrs,
            _ => return visit::visit_item(self, item),
        };
        if !is_for_tests(attributes) {
            visit::visit_item(self, item);
        }
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        self.tree(
            &[],
            &item.tree,
            !matches!(item.vis, syn::Visibility::Inherited),
        );
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        if path.segments.len() > 1 {
            self.add(
                &path
                    .segments
                    .iter()
                    .map(|segment| segment.ident.to_string())
                    .collect::<Vec<_>>(),
            );
        }
        visit::visit_path(self, path);
    }

    /// The input of a macro is tokens: paths that begin at the crate or above are found.
    fn visit_macro(&mut self, called: &'ast syn::Macro) {
        let tokens = called.tokens.to_string();
        for start in ["crate :: ", "super :: ", "self :: "] {
            for (at, _) in tokens.match_indices(start) {
                let names = tokens[at..].split(" :: ").map(|name| {
                    name.chars()
                        .take_while(|c| c.is_alphanumeric() || *c == '_')
                        .collect::<String>()
                });
                self.add(
                    &names
                        .take_while(|name| !name.is_empty())
                        .take(8)
                        .collect::<Vec<_>>(),
                );
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn modules(files: &[(&str, &str)]) -> Modules {
        let mut modules = Modules {
            imports: BTreeMap::new(),
            exports: BTreeMap::new(),
        };
        for (path, text) in files {
            let module: Module = path
                .split("::")
                .filter(|part| !part.is_empty())
                .map(str::to_owned)
                .collect();
            let file = syn::parse_file(text).expect("Rust");
            let mut reader = Reader {
                module: &module,
                paths: Vec::new(),
                exports: Vec::new(),
            };
            reader.visit_file(&file);
            modules.imports.insert(module.clone(), reader.paths);
            modules.exports.extend(
                reader
                    .exports
                    .into_iter()
                    .map(|(item, from)| ((module.clone(), item), from)),
            );
        }
        modules
    }

    #[test]
    fn a_circle_is_found_through_re_exports_paths_and_macros_and_not_through_tests() {
        let circles = |b: &str, root: &str| {
            modules(&[
                ("", root),
                ("a", "pub struct A; use crate::b::B;"),
                ("b", b),
            ])
            .circles()
            .len()
        };
        let root = "mod a; mod b; pub use a::A;";
        assert_eq!(circles("pub struct B;", root), 0);
        for b in [
            "use crate::A; pub struct B;",
            "use super::{a::A}; pub struct B;",
            "pub struct B(crate::a::A);",
            "pub fn b() { println!(\"{}\", crate::a::A) }",
        ] {
            assert_eq!(circles(b, root), 2, "{b}");
        }
        assert_eq!(
            circles(
                "#[cfg(test)] mod tests { use crate::A; } #[cfg(test)] use crate::a::A;",
                root
            ),
            0
        );
        // Items of the parent are the parent's own.
        assert_eq!(
            modules(&[
                ("", "mod a; pub struct Own;"),
                ("a", "use crate::Own; use super::Own as Other;")
            ])
            .circles()
            .len(),
            0
        );
    }
}
