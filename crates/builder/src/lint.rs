//! Rules for the PTX of kernels.
//!
//! Each rule describes a slip that compiles, runs and costs speed or correctness: arrays that did not stay in
//! registers, pointers that lost their address space, atomics and loads at system scope instead of the device's, and
//! functions that were not inlined. A kernel that needs one of these calls a function of `warpset_simt::allow`, which
//! leaves the comment `// @allow_<rule>` in its body.

use std::{
    collections::{BTreeSet, HashSet},
    fmt,
};

/// Start of the comment by which a kernel permits itself what a rule forbids.
const ALLOW: &str = "// @allow_";

/// A kind of slip.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Rule {
    /// An array in local memory: private to the thread, and as slow as global memory.
    Local,
    /// A load, store or atomic on an address of unknown space.
    Generic,
    /// An access or a fence at the scope of the whole system.
    System,
    /// A call, or a function that could be called.
    Call,
}

impl Rule {
    /// Returns the name after [`ALLOW`].
    const fn name(self) -> &'static str {
        match self {
            Self::Local => "local",
            Self::Generic => "generic",
            Self::System => "system",
            Self::Call => "call",
        }
    }

    const fn meaning(self) -> &'static str {
        match self {
            Self::Local => "local memory: an array is not in registers",
            Self::Generic => "generic access: a pointer lost its address space",
            Self::System => "system scope: the device's was meant",
            Self::Call => "a function that was not inlined",
        }
    }

    const fn remedy(self) -> &'static str {
        match self {
            Self::Local => "index arrays by variables of loops whose bounds are constant",
            Self::Generic => "pass each pointer as a parameter of its own, a `Global` or `GlobalMut`",
            Self::System => "use the atomics and fences of `warpset_simt`",
            Self::Call => "mark the function `#[inline(always)]`",
        }
    }
}

/// One statement that breaks a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The line's number, from 1.
    pub line: usize,
    /// The kernel; empty for lines outside of kernels.
    pub kernel: String,
    /// The rule that it breaks.
    pub rule: Rule,
    /// The line's text.
    pub text: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kernel = if self.kernel.is_empty() { "(outside of kernels)" } else { &self.kernel };
        write!(f, "{}: {kernel}: {}: {}", self.line, self.rule.meaning(), self.text)
    }
}

/// Returns the first finding of each kind in each kernel, with the number of similar ones: one slip breaks many lines.
pub fn summary(findings: &[Finding]) -> Vec<String> {
    let of_one_kind = findings.chunk_by(|a, b| a.kernel == b.kernel && a.rule == b.rule);
    let line = |alike: &[Finding]| match alike.len() {
        1 => alike[0].to_string(),
        n => format!("{} (and {} more)", alike[0], n - 1),
    };
    of_one_kind.map(line).collect()
}

/// Returns the remedies for the kinds of slip that were found, one line each.
pub(crate) fn remedies(findings: &[Finding]) -> String {
    let rules: BTreeSet<_> = findings.iter().map(|finding| finding.rule).collect();
    let lines = rules.into_iter().map(|rule| {
        format!("For {}: {}; or allow it by `warpset_simt::allow::{}()`.", rule.name(), rule.remedy(), rule.name())
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// Finds every slip in `ptx` that its kernel does not permit.
pub fn lint(ptx: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (kernel, lines) in by_kernel(ptx) {
        let allowed: HashSet<_> = lines.iter().filter_map(|(_, line)| allowance(line)).collect();
        for (line, text) in lines {
            let found = rules_broken(text).into_iter().filter(|rule| !allowed.contains(rule.name()));
            findings.extend(found.map(|rule| Finding {
                line,
                kernel: kernel.to_owned(),
                rule,
                text: text.trim().to_owned(),
            }));
        }
    }
    findings
}

/// Whether `kernel` permits in `ptx` what `rule` forbids.
pub fn allows(ptx: &str, kernel: &str, rule: &str) -> bool {
    by_kernel(ptx)
        .iter()
        .any(|(name, lines)| *name == kernel && lines.iter().any(|(_, line)| allowance(line) == Some(rule)))
}

fn allowance(line: &str) -> Option<&str> {
    line.trim().strip_prefix(ALLOW)?.split_whitespace().next()
}

/// Splits the text into the numbered lines of each kernel; the lines before the first kernel and of functions are under
/// the empty name.
fn by_kernel(ptx: &str) -> Vec<(&str, Vec<(usize, &str)>)> {
    let mut kernels = vec![("", Vec::new())];
    for (index, line) in ptx.lines().enumerate() {
        if let Some((_, name)) = directive(line, ".entry") {
            kernels.push((name, Vec::new()));
        } else if directive(line, ".func").is_some() {
            kernels.push(("", Vec::new()));
        }
        kernels.last_mut().expect("there is a first one").1.push((index + 1, line));
    }
    kernels
}

/// Returns the directive and the name after it, if the line is directive `which`.
fn directive<'a>(line: &'a str, which: &str) -> Option<(&'a str, &'a str)> {
    let code = line.split("//").next().unwrap_or_default();
    let mut words = code.split_whitespace().skip_while(|word| [".visible", ".weak", ".extern"].contains(word));
    let first = words.next()?;
    let name = words.next().unwrap_or_default();
    (first == which).then(|| (first, name.split('(').next().unwrap_or(name)))
}

/// Lists the rules that a line breaks.
fn rules_broken(line: &str) -> Vec<Rule> {
    let code = line.split("//").next().unwrap_or_default();
    let mut broken = Vec::new();
    if directive(code, ".func").is_some() {
        broken.push(Rule::Call);
    }
    // Inline assembly may hold several statements, and a block of its own, in one line.
    for statement in code.split([';', '{', '}']) {
        let mut words = statement.split_whitespace().skip_while(|word| word.starts_with('@') || word.ends_with(':'));
        let Some(mnemonic) = words.next() else { continue };
        // Vectors in braces split statements into pieces that start with `%`, `,` or `[`.
        if !mnemonic.starts_with(|c: char| c.is_ascii_lowercase() || c == '.') {
            continue;
        }
        broken.extend(rule_broken(mnemonic));
    }
    broken
}

fn rule_broken(mnemonic: &str) -> Option<Rule> {
    let mut parts = mnemonic.split('.');
    let operation = parts.next().unwrap_or_default();
    let qualifiers: Vec<_> = parts.collect();
    let has = |qualifier: &str| qualifiers.contains(&qualifier);
    let in_shared = qualifiers.iter().any(|part| part.split("::").next() == Some("shared"));
    if operation.is_empty() {
        return has("local").then_some(Rule::Local);
    }
    match operation {
        "call" => return Some(Rule::Call),
        "ld" | "ldu" | "st" | "atom" | "red" => {}
        "membar" | "fence" => return has("sys").then_some(Rule::System),
        _ => return None,
    }
    if has("local") {
        Some(Rule::Local)
    } else if has("sys") || has("mmio") || (has("volatile") && !in_shared) {
        // A volatile access is a relaxed one at system scope.
        Some(Rule::System)
    } else if !in_shared && !["global", "const", "param"].iter().any(|space| has(space)) {
        Some(Rule::Generic)
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a kernel with `body`, after another that is clean.
    fn kernel(body: &str) -> String {
        format!(
            ".version 8.0\n.visible .entry clean(\n\t.param .u32 clean_param_0\n)\n{{\n\tret;\n}}\n\
             .visible .entry probed()\n{{\n{body}\n\tret;\n}}\n"
        )
    }

    fn rules(body: &str) -> Vec<Rule> {
        let findings = lint(&kernel(body));
        assert!(findings.iter().all(|finding| finding.kernel == "probed"), "{findings:?}");
        findings.into_iter().map(|finding| finding.rule).collect()
    }

    #[test]
    fn good_code_is_left_alone() {
        let body = "\tld.param.b64 \t%rd2, [p];\n\tcvta.to.global.u64 \t%rd1, %rd2;\n\
                    \tld.global.v4.b32 \t{%r1, %r2, %r3, %r4}, [%rd4];\n\tld.global.nc.b32 %r8, [%rd7];\n\
                    \tst.shared.u32 [%r1], %r2;\n\tatom.global.add.u32 %r1, [%rd1], 1;\n\
                    \tred.relaxed.gpu.global.or.b32 [%rd1], %r2;\n\tatom.shared.cas.b32 %r1, [%r2], %r3, %r4;\n\
                    \tld.acquire.gpu.global.u32 %r1, [%rd1];\n\tld.volatile.shared.u32 %r1, [%r2];\n\
                    \tfence.acq_rel.gpu;\n\tmembar.gl;\n\tbar.sync 0;\n\t@%p1 bra \t$L__BB0_2;\n\
                    \tcp.async.cg.shared.global [%r1], [%rd1], 16;\n\tst.async.shared::cluster.b32 [%r1], %r2, [%r3];\n\
                    // ld.u32 in a comment\n\tst.global.u32 [%rd1], %r1; // not local";
        assert_eq!(rules(body), []);
    }

    #[test]
    fn local_memory_is_found() {
        assert_eq!(rules("\t.local .align 8 .b8 \t__local_depot0[64];"), [Rule::Local]);
        assert_eq!(rules("\tst.local.b32 \t[%rd1], %r1;"), [Rule::Local]);
        assert_eq!(rules("\tld.local.v2.b64 \t{%rd1, %rd2}, [%rd3];"), [Rule::Local]);
    }

    #[test]
    fn generic_accesses_are_found() {
        for statement in [
            "ld.b32 \t%r1, [%rd1];",
            "ld.v4.b32 \t{%r1, %r2, %r3, %r4}, [%rd1];",
            "st.b8 \t[%rd1], %rs1;",
            "atom.add.u32 %r1, [%rd1], 1;",
            "@%p1 red.or.b32 [%rd1], %r1;",
            "@!%p1 ld.acquire.gpu.u32 %r1, [%rd1];",
            "{ .reg .pred p; setp.ne.u32 p, %r1, 0; @p st.u32 [%rd1], %r1; }",
            "$L__BB0_2: ld.u8 %rs1, [%rd1];",
        ] {
            assert_eq!(rules(&format!("\t{statement}")), [Rule::Generic], "{statement}");
        }
    }

    #[test]
    fn system_scope_is_found() {
        for statement in [
            "ld.relaxed.sys.global.b32 %r1, [%rd1];",
            "st.release.sys.global.b32 [%rd1], %r1;",
            "atom.relaxed.sys.global.cas.b32 %r1, [%rd1], %r2, %r3;",
            "ld.volatile.global.b32 %r1, [%rd1];",
            "fence.acq_rel.sys;",
            "membar.sys;",
        ] {
            assert_eq!(rules(&format!("\t{statement}")), [Rule::System], "{statement}");
        }
    }

    #[test]
    fn calls_and_functions_are_found() {
        assert_eq!(rules("\tcall.uni (retval0), some_function, (param0);"), [Rule::Call]);
        assert_eq!(rules("\t{ // callseq 0, 0\n\tcall.uni \n\tpanic, \n\t(\n\t);\n\t} // callseq 0"), [Rule::Call]);
        let declared = lint(".extern .func  (.param .b32 func_retval0) vprintf\n(\n\t.param .b64 a\n);\n");
        assert_eq!(declared.len(), 1);
        assert_eq!((declared[0].rule, declared[0].line), (Rule::Call, 1));
        assert_eq!(lint(".func helper()\n{\n\tret;\n}\n")[0].rule, Rule::Call);
    }

    #[test]
    fn a_kernel_may_ask_and_only_for_itself() {
        let ask = "\t// begin inline asm\n\t// @allow_local\n\t// end inline asm\n";
        let slip = "\tst.local.b32 \t[%rd1], %r1;";
        assert_eq!(rules(&format!("{slip}\n{ask}")), []);
        assert_eq!(rules(&format!("{ask}\tld.b32 %r1, [%rd1];")), [Rule::Generic]);
        let other = format!(".visible .entry asks()\n{{\n{ask}}}\n{}", kernel(slip));
        assert_eq!(lint(&other).len(), 1);
        assert!(allows(&other, "asks", "local"));
        assert!(!allows(&other, "probed", "local"));
        assert!(!allows(&other, "asks", "spill"));
    }

    #[test]
    fn findings_of_one_kind_are_one_line() {
        let findings = lint(&kernel(&("\tst.local.b32 [%rd1], %r1;\n".repeat(5) + "\tld.b32 %r1, [%rd1];\n")));
        let lines = summary(&findings);
        assert_eq!(lines.len(), 2);
        assert!(lines[0].ends_with("(and 4 more)"), "{}", lines[0]);
        let remedies = remedies(&findings);
        assert_eq!(remedies.lines().count(), 2);
        assert!(remedies.contains("`warpset_simt::allow::local()`"), "{remedies}");
    }

    #[test]
    fn a_finding_names_place_and_reason() {
        let finding = &lint(&kernel("\tld.b32 %r1, [%rd1];"))[0];
        assert_eq!(finding.line, 10);
        let shown = finding.to_string();
        assert!(shown.contains("10: probed: generic access"), "{shown}");
        assert!(shown.ends_with("ld.b32 %r1, [%rd1];"), "{shown}");
    }
}
