//! Launch bounds: from the comment that a kernel leaves in its PTX to the directives that the PTX compiler reads.
//!
//! Rust has no attribute for them, so `kernel!` writes `// @launch_bounds THREADS [BLOCKS]` into the body. The
//! directives belong between the parameter list and the body, where only a change of the text can put them.

const MARKER: &str = "// @launch_bounds ";

/// Inserts `.maxntid` and `.minnctapersm` before the body of each kernel that carries launch bounds.
///
/// `.maxntid` bounds the product of the block's extents, so the number goes into the first of them. Kernels that have a
/// `.maxntid` already stay as they are: applying this twice changes nothing.
pub fn with_launch_bounds(ptx: &str) -> String {
    let mut out = String::with_capacity(ptx.len() + 1024);
    let mut rest = ptx;
    while let Some(entry) = find_entry(rest) {
        let (before, kernel) = rest.split_at(entry);
        out.push_str(before);
        // A kernel reaches to the next entry; its body starts at the first brace, which no parameter list contains.
        let end = find_entry(&kernel[1..]).map_or(kernel.len(), |next| next + 1);
        let (kernel, after) = kernel.split_at(end);
        match (kernel.find('{'), bounds(kernel)) {
            (Some(body), Some((threads, blocks))) if !kernel[..body].contains(".maxntid") => {
                out.push_str(&kernel[..body]);
                out.push_str(&format!(".maxntid {threads}, 1, 1\n"));
                if let Some(blocks) = blocks {
                    out.push_str(&format!(".minnctapersm {blocks}\n"));
                }
                out.push_str(&kernel[body..]);
            }
            _ => out.push_str(kernel),
        }
        rest = after;
    }
    out.push_str(rest);
    out
}

/// Finds the next `.entry` directive, at the start of a line or after `.visible`.
fn find_entry(ptx: &str) -> Option<usize> {
    ptx.match_indices(".entry ").map(|(at, _)| at).find(|&at| {
        let line = ptx[..at].rsplit('\n').next().unwrap_or_default();
        line.is_empty() || line == ".visible " || line == ".weak "
    })
}

/// Parses the numbers after the marker: threads per block, and blocks per multiprocessor if given.
fn bounds(kernel: &str) -> Option<(u32, Option<u32>)> {
    let line = &kernel[kernel.find(MARKER)? + MARKER.len()..];
    let mut numbers = line.lines().next()?.split_whitespace().map_while(|word| word.parse().ok());
    Some((numbers.next()?, numbers.next().filter(|&blocks| blocks > 0)))
}

#[cfg(test)]
mod tests {
    use super::with_launch_bounds;

    const TWO_KERNELS: &str = "\
.version 8.0
.visible .entry first(
\t.param .u64 first_param_0
)
{
\t// begin inline asm
\t// @launch_bounds 256 8
\t// end inline asm
\tret;
}
\t// .globl second
.visible .entry second()
{
\tret;
}
.visible .entry third()
{
\t// @launch_bounds 1024
\tret;
}
.visible .entry fourth()
{
\t// @launch_bounds 512 0
\tret;
}
";

    #[test]
    fn directives_stand_between_parameters_and_body() {
        let ptx = with_launch_bounds(TWO_KERNELS);
        assert!(ptx.contains("first_param_0\n)\n.maxntid 256, 1, 1\n.minnctapersm 8\n{\n"));
        assert!(ptx.contains("third()\n.maxntid 1024, 1, 1\n{\n"));
        assert!(ptx.contains("fourth()\n.maxntid 512, 1, 1\n{\n"));
    }

    #[test]
    fn kernels_without_bounds_stay_as_they_are() {
        let ptx = with_launch_bounds(TWO_KERNELS);
        assert!(ptx.contains(".visible .entry second()\n{\n"));
        assert_eq!(ptx.matches(".maxntid").count(), 3);
    }

    #[test]
    fn applying_twice_changes_nothing() {
        let once = with_launch_bounds(TWO_KERNELS);
        assert_eq!(with_launch_bounds(&once), once);
    }

    #[test]
    fn text_without_kernels_is_returned_whole() {
        for text in ["", "no kernel here", ".entry", "// the .entry directive\n"] {
            assert_eq!(with_launch_bounds(text), text);
        }
    }
}
