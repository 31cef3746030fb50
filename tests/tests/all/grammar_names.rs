//! Public method names follow the grammar of `docs/architecture.md`: this reads the sources and holds every signature
//! to it.

use std::fs;
use std::path::{Path, PathBuf};

/// A public function as its source declares it.
struct Signature {
    file: PathBuf,
    name: String,
    is_unsafe: bool,
    /// Generics, parameters, result and bounds, up to the body.
    rest: String,
}

impl Signature {
    /// Returns the name without the suffix of a method of choice.
    fn base(&self) -> &str {
        self.name.strip_suffix("_with").unwrap_or(&self.name)
    }

    fn takes(&self, parts: &[&str]) -> bool {
        let parameters = self.rest.split("->").next().unwrap_or_default();
        parts.iter().any(|part| parameters.contains(part))
    }
}

/// The folders whose public functions are the API of structures.
const STRUCTURES: &[&str] = &["bloom", "fuse", "lsm", "mphf", "quotient", "range", "sequence", "static"];
/// File of the traits of filters, whose methods have no `pub`.
const TRAITS: &str = "../crates/primitives/src/device_filter.rs";

/// Files of steps that papers' methods share with ours. They are public for those crates alone, and hidden.
const HOOKS: [&str; 5] = [
    "mphf/src/recsplit/gpu/search/by_bucket.rs",
    "quotient/src/gpu/fingerprints.rs",
    "quotient/src/gpu/launch.rs",
    "quotient/src/gpu/methods.rs",
    "quotient/src/gpu/scan.rs",
];

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs")
            && !path.to_string_lossy().ends_with("tests.rs")
            && !HOOKS.iter().any(|hook| path.ends_with(hook))
        {
            found.push(path);
        }
    }
}

/// Returns every `pub fn` and `pub unsafe fn` outside of comments.
fn signatures() -> Vec<Signature> {
    let manifest = std::env::var("CARGO_MANIFEST_DIR").unwrap_or_else(|_| env!("CARGO_MANIFEST_DIR").to_owned());
    let mut files = vec![Path::new(&manifest).join(TRAITS)];
    for structure in STRUCTURES {
        sources(&Path::new(&manifest).join("../crates").join(structure).join("src"), &mut files);
    }
    let mut signatures = Vec::new();
    for file in files {
        let text: String = fs::read_to_string(&file)
            .unwrap()
            .lines()
            .filter(|line| !line.trim_start().starts_with("//"))
            .flat_map(|line| [line, "\n"])
            .collect();
        let marker = if file.ends_with("device_filter.rs") { "\n    " } else { "pub " };
        for (at, marker) in text.match_indices(marker) {
            let after = text[at + marker.len()..].trim_start_matches("const ");
            let is_unsafe = after.starts_with("unsafe ");
            let Some(after) = after.trim_start_matches("unsafe ").strip_prefix("fn ") else { continue };
            let end = after.find(['{', ';']).unwrap_or(after.len());
            let name_end = after.find(['<', '(']).unwrap_or(end);
            // A macro's invocations name these.
            if after.starts_with('$') {
                continue;
            }
            signatures.push(Signature {
                file: file.clone(),
                name: after[..name_end].to_owned(),
                is_unsafe,
                rest: after[name_end..end].split_whitespace().collect::<Vec<_>>().join(" "),
            });
        }
    }
    signatures
}

/// Returns the rule that a signature breaks, if any.
fn fault(signature: &Signature) -> Option<&'static str> {
    let base = signature.base();
    let queued = signature.takes(&["&Stream"]);
    let on_device = signature.takes(&["DeviceSlice<", "DeviceSliceMut<", "K: DeviceKey", "impl DeviceKeys"]);
    let many = signature.takes(&["&[K]", "keys: &mut Vec<K>", "fingerprints: &[u64]"]);
    if base.ends_with("_many") || base.contains("_bulk_async") || base.contains("_bulk_device") || base == "to_cpu" {
        return Some("has a suffix that the grammar does not know");
    }
    if queued != base.ends_with("_async") {
        return Some("queues on a stream exactly if its name ends in `_async`");
    }
    if queued && !signature.is_unsafe {
        return Some("queues, so it is `unsafe`");
    }
    let builds = base.starts_with("build_from");
    if on_device && !queued && !(base.ends_with("_device") || base == "new" || base == "unchecked") {
        return Some("takes device memory and waits, so its name ends in `_device`");
    }
    // A host slice with one batch per device is no slice of keys.
    let named = ["_bulk", "_bulk_into", "_each_device"].iter().any(|end| base.ends_with(end));
    if many && !builds && !named {
        return Some("takes a host slice, so its name ends in `_bulk` or `_bulk_into`");
    }
    None
}

#[test]
fn names_follow_the_grammar() {
    let signatures = signatures();
    assert!(signatures.len() > 200, "only {} public functions found", signatures.len());
    let faults: Vec<String> = signatures
        .iter()
        .filter_map(|signature| {
            let Signature { file, name, rest, .. } = signature;
            fault(signature).map(|why| format!("{}: `{name}{rest}` {why}", file.display()))
        })
        .collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}
