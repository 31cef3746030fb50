//! Names in the PTX that do not depend on the machine.
//!
//! Rust's symbols carry a crate disambiguator, which Cargo derives from the compiler's commit and from paths. Two
//! builds of the same sources must give the same text, so it goes. Within one module the crate's name tells as much.

/// `ptx` without crate disambiguators: `_RNvNtCs7qjyHQuge67_7warpset5TABLE` becomes `_RNvNtC7warpset5TABLE`.
pub fn canonical(ptx: &str) -> String {
    let mut out = String::with_capacity(ptx.len());
    let mut rest = ptx;
    while let Some(start) = rest.find("_R") {
        let (before, symbol) = rest.split_at(start);
        let end = symbol.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == '$')).unwrap_or(symbol.len());
        let (symbol, after) = symbol.split_at(end);
        out.push_str(before);
        // In the middle of a name it is not a symbol of Rust's.
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

/// A crate root in a symbol is `C`, optionally `s<base 62>_`, then the length of the name.
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
    fn everything_else_stays() {
        for text in ["", "_R", "_RNvCs", "ld.param.b64 %rd4, [A_RCs1_2x];", "$L__BB0_2:\n", "// Cs1_2 é _R é"] {
            assert_eq!(canonical(text), text);
        }
    }
}
