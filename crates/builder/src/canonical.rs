//! Names in the PTX that do not depend on the machine.
//!
//! Rust's symbols contain a crate disambiguator, which Cargo derives from the compiler's commit and from paths; LLVM's
//! names of unnamed constants contain a hash over such symbols. Two builds of equal sources must give equal text, so
//! disambiguators are removed (within one module the crate's name suffices), and hashes become numbers.

/// Replaces hashes in symbols: `_RNvNtC7warpset5TABLE` for `_RNvNtCs7qjyHQuge67_7warpset5TABLE`, and `anon_$_0_$_5` for
/// `anon_$_1e647cf2ada5aeb69bca5f5d00d58ec9_$_5`.
pub fn canonical(ptx: &str) -> String {
    number_hashes(&remove_disambiguators(ptx))
}

const UNNAMED: &str = "anon_$_";

/// Numbers the hashes of unnamed constants in the order of their first use; each hash identifies one crate's constants.
fn number_hashes(ptx: &str) -> String {
    let mut out = String::with_capacity(ptx.len());
    let mut seen: Vec<&str> = Vec::new();
    let mut rest = ptx;
    while let Some(start) = rest.find(UNNAMED) {
        let (before, tail) = rest.split_at(start + UNNAMED.len());
        out.push_str(before);
        let digits = tail.find(|c: char| !c.is_ascii_hexdigit()).unwrap_or(tail.len());
        let (hash, after) = tail.split_at(digits);
        if hash.len() == 32 {
            let number = seen.iter().position(|other| *other == hash).unwrap_or_else(|| {
                seen.push(hash);
                seen.len() - 1
            });
            out.push_str(&number.to_string());
        } else {
            out.push_str(hash);
        }
        rest = after;
    }
    out.push_str(rest);
    out
}

fn remove_disambiguators(ptx: &str) -> String {
    let mut out = String::with_capacity(ptx.len());
    let mut rest = ptx;
    while let Some(start) = rest.find("_R") {
        let (before, symbol) = rest.split_at(start);
        let end = symbol.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == '$')).unwrap_or(symbol.len());
        let (symbol, after) = symbol.split_at(end);
        out.push_str(before);
        // In the middle of a name, `_R` does not begin a symbol of Rust's.
        if before.ends_with(|c: char| c.is_ascii_alphanumeric() || c == '$') {
            out.push_str(symbol);
        } else {
            push_without_disambiguators(&mut out, symbol);
        }
        rest = after;
    }
    out.push_str(rest);
    out
}

/// Appends a symbol without disambiguators. A crate root in a symbol is `C`, optionally `s<base 62>_`, then the length
/// of the name.
fn push_without_disambiguators(out: &mut String, mut symbol: &str) {
    while let Some(at) = symbol.find("Cs") {
        let tail = &symbol[at + 2..];
        let digits = tail.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(tail.len());
        let name = tail[digits..].strip_prefix('_').filter(|name| name.starts_with(|c: char| c.is_ascii_digit()));
        match name {
            Some(name) => {
                out.push_str(&symbol[..=at]);
                symbol = name;
            }
            None => {
                out.push_str(&symbol[..at + 2]);
                symbol = tail;
            }
        }
    }
    out.push_str(symbol);
}

#[cfg(test)]
mod tests {
    use super::canonical;

    #[test]
    fn disambiguators_go_everywhere() {
        let here = "mov.b64 %rd6, _RNvNtCs7qjyHQuge67_15warpset_kernels8selftest5TABLE;\n";
        let there = "mov.b64 %rd6, _RNvNtCs249SzlfI48O_15warpset_kernels8selftest5TABLE;\n";
        assert_eq!(canonical(here), canonical(there));
        assert_eq!(canonical(here), "mov.b64 %rd6, _RNvNtC15warpset_kernels8selftest5TABLE;\n");
        let two = "_RINvNtCsaaa_4core3mem4swapNtCsbbb_3foo3BarE_$_1[4]";
        assert_eq!(canonical(two), "_RINvNtC4core3mem4swapNtC3foo3BarE_$_1[4]");
    }

    #[test]
    fn hashes_of_unnamed_constants_become_numbers() {
        let first = "anon_$_1e647cf2ada5aeb69bca5f5d00d58ec9_$_0";
        let second = "anon_$_00000000ada5aeb69bca5f5d00d58ec9_$_0";
        let ptx = format!("{second}[4]; {first}; {second}; anon_$_7;");
        assert_eq!(canonical(&ptx), "anon_$_0_$_0[4]; anon_$_1_$_0; anon_$_0_$_0; anon_$_7;");
    }

    #[test]
    fn everything_else_stays() {
        for text in ["", "_R", "_RNvCs", "ld.param.b64 %rd4, [A_RCs1_2x];", "$L__BB0_2:\n", "// Cs1_2 é _R é"] {
            assert_eq!(canonical(text), text);
        }
    }
}
