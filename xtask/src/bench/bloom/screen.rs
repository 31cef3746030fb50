//! Screens: which of these keys are in that set? The exact truth beside what each filter says.

use std::collections::HashSet;

use comfy_table::presets::UTF8_BORDERS_ONLY;
use comfy_table::{CellAlignment, Table};
use indicatif::HumanCount;

use super::super::record::Record;
use super::super::suite::{Input, Session, Setup, Step, Target, Threads};
use super::super::table::rate;
use super::peers::Peer;
use super::subject::{Keys, Subject};
use super::variant::Variant;

/// The false-positive rate that every filter is built for.
const FPR: f64 = 0.01;

/// The screens on genomes and on words, in this order.
pub fn steps(setup: &Setup) -> Vec<Step> {
    // The emulator is for small sizes: it takes part in the generated input only.
    let targets: Vec<Target> = setup.targets.iter().filter(|target| !target.is_emulator()).cloned().collect();
    if targets.is_empty() {
        return Vec::new();
    }
    let (on_genomes, on_words, own_keys) = (targets.clone(), targets, setup.own_keys);
    vec![
        Step::new("bloom: genome screen", move |session| genomes(session, &on_genomes)),
        Step::new(if own_keys { "bloom: screen of your keys" } else { "bloom: word screen" }, move |session| {
            if own_keys { own(session, &on_words) } else { words(session, &on_words) }
        }),
    ]
}

/// One question: the set, and the keys that are asked for, those of the set first.
struct Screen<'a> {
    input: String,
    /// What the keys are, for the sentence above the table.
    noun: &'a str,
    set: &'a str,
    asked_from: &'a str,
    present: Keys<'a>,
    /// Distinct keys in `present`.
    distinct: usize,
    asked: Keys<'a>,
    /// How many of `asked` are in the set: the first ones.
    shared: usize,
}

fn genomes(session: &mut Session, targets: &[Target]) -> anyhow::Result<()> {
    let input = session.input();
    let Input { genomes, .. } = &*input;
    let Some((reference, samples)) = genomes.split_first() else { return Ok(()) };
    for sample in samples {
        let (mut asked, absent) = sample.screen(reference);
        let shared = asked.len();
        asked.extend(absent);
        let screen = Screen {
            input: format!("{} in {}", sample.name, reference.name),
            noun: "distinct 31-mers",
            set: &reference.name,
            asked_from: &sample.name,
            present: Keys::U64(&reference.kmers),
            distinct: reference.distinct.len(),
            asked: Keys::U64(&asked),
            shared,
        };
        run(session, targets, &screen)?;
    }
    Ok(())
}

fn words(session: &mut Session, targets: &[Target]) -> anyhow::Result<()> {
    let input = session.input();
    let present = input.present.slices();
    let known: HashSet<&[u8]> = present.iter().copied().collect();
    let (mut asked, absent): (Vec<&[u8]>, Vec<&[u8]>) =
        input.asked.slices().into_iter().partition(|word| known.contains(word));
    let shared = asked.len();
    asked.extend(absent);
    let screen = Screen {
        input: "words".into(),
        noun: "words",
        set: "the common ones",
        asked_from: "a large English list",
        present: Keys::Bytes(&present),
        distinct: known.len(),
        asked: Keys::Bytes(&asked),
        shared,
    };
    run(session, targets, &screen)
}

/// The user's keys, and as many that are not among them: each key with a byte more.
fn own(session: &mut Session, targets: &[Target]) -> anyhow::Result<()> {
    let input = session.input();
    let present = input.present.slices();
    let known: HashSet<&[u8]> = present.iter().copied().collect();
    let longer: Vec<Vec<u8>> = known.iter().map(|key| [key, &b"~"[..]].concat()).collect();
    let mut asked: Vec<&[u8]> = known.iter().copied().collect();
    asked.sort_unstable();
    let shared = asked.len();
    asked.extend(longer.iter().map(Vec::as_slice).filter(|key| !known.contains(key)));
    let screen = Screen {
        input: "your keys".into(),
        noun: "keys",
        set: "your file",
        asked_from: "your file and as many others",
        present: Keys::Bytes(&present),
        distinct: known.len(),
        asked: Keys::Bytes(&asked),
        shared,
    };
    run(session, targets, &screen)
}

/// What one filter said.
struct Outcome {
    name: String,
    on: String,
    bits_per_key: f64,
    said: usize,
    missed: usize,
    false_positives: usize,
    expected: Option<f64>,
    insert_rate: f64,
    query_rate: f64,
}

fn run(session: &mut Session, targets: &[Target], screen: &Screen<'_>) -> anyhow::Result<()> {
    let mut outcomes = Vec::new();
    for target in targets {
        for variant in Variant::for_screens() {
            let filter = variant.for_capacity(target, screen.distinct, FPR)?;
            outcomes.push(ask(session, target, screen, variant.name(), None, filter)?);
        }
    }
    if targets.contains(&Target::Cpu) {
        for peer in Peer::ALL.into_iter().filter(|peer| peer.inserts_in_parallel()) {
            let filter = peer.for_capacity(screen.distinct, FPR)?;
            outcomes.push(ask(session, &Target::Cpu, screen, peer.name(), Some(peer), filter)?);
        }
    }
    session.print(&table(screen, &outcomes));
    Ok(())
}

fn ask(
    session: &mut Session,
    target: &Target,
    screen: &Screen<'_>,
    name: String,
    peer: Option<Peer>,
    mut filter: Box<dyn Subject>,
) -> anyhow::Result<Outcome> {
    // Inserting again changes nothing, so the filter need not be emptied between repeats.
    let insert_seconds =
        session.time_after(Threads::All, &mut filter, |_| Ok(()), |filter| filter.insert(screen.present))?;
    let mut answers = vec![false; screen.asked.len()];
    let ask = |answers: &mut Vec<bool>| filter.contains(screen.asked, answers);
    let query_seconds = session.time_after(Threads::All, &mut answers, |_| Ok(()), ask)?;

    let (in_set, others) = answers.split_at(screen.shared);
    let missed = in_set.iter().filter(|answer| !**answer).count();
    let false_positives = others.iter().filter(|answer| **answer).count();
    let expected = filter.theory(screen.distinct).map(|rate| rate * others.len() as f64);
    let right = missed == 0 && expected.is_none_or(|expected| plausible(false_positives, expected));
    let input = &screen.input;
    session.verify(right, || {
        format!("{input}: {name} missed {missed} keys and let {false_positives} through, expected {expected:?}")
    });

    let bits_per_key = filter.bytes() as f64 * 8.0 / screen.distinct as f64;
    let label = if peer.is_some() { "implementation" } else { "variant" };
    let row = |operation: &str, n: usize, seconds: f64| {
        let mut row = Record::new("bloom", operation, n).time(seconds);
        row = row.param(label, name.clone()).param("input", screen.input.clone()).param("key", screen.present.kind());
        if let Some(hashes) = filter.hashes() {
            row = row.param("hashes", hashes);
        }
        row.bits_per_item = Some(bits_per_key);
        row.checked = right;
        row
    };
    session.push_on(target, row("insert", screen.present.len(), insert_seconds), Threads::All);
    let mut query = row("screen", screen.asked.len(), query_seconds);
    query = query
        .param("truth", screen.shared)
        .param("said", in_set.len() - missed + false_positives)
        .param("false_positives", false_positives);
    if let Some(expected) = expected {
        query = query.param("expected", expected);
    }
    query.fpr = (!others.is_empty()).then(|| false_positives as f64 / others.len() as f64);
    session.push_on(target, query, Threads::All);

    Ok(Outcome {
        name,
        on: target.name().into(),
        bits_per_key,
        said: in_set.len() - missed + false_positives,
        missed,
        false_positives,
        expected,
        insert_rate: screen.present.len() as f64 / insert_seconds,
        query_rate: screen.asked.len() as f64 / query_seconds,
    })
}

/// Whether a count of rare independent events agrees with its expectation: within six standard deviations and the
/// tenth that our formulas may be off.
pub fn plausible(count: usize, expected: f64) -> bool {
    (count as f64 - expected).abs() <= 6.0 * expected.sqrt() + 0.1 * expected + 3.0
}

fn table(screen: &Screen<'_>, outcomes: &[Outcome]) -> String {
    let count = |n: usize| HumanCount(n as u64).to_string();
    let mut table = Table::new();
    table.load_style(UTF8_BORDERS_ONLY).set_header([
        "filter",
        "on",
        "bits/key",
        "says yes",
        "missed",
        "false positives",
        "expected",
        "inserts/s",
        "queries/s",
    ]);
    table.add_row(["(the truth)".into(), String::new(), String::new(), count(screen.shared), "0".into(), "0".into()]);
    for outcome in outcomes {
        table.add_row([
            outcome.name.clone(),
            outcome.on.clone(),
            format!("{:.2}", outcome.bits_per_key),
            count(outcome.said),
            count(outcome.missed),
            count(outcome.false_positives),
            outcome.expected.map_or_else(String::new, |expected| format!("{expected:.1}")),
            rate(outcome.insert_rate),
            rate(outcome.query_rate),
        ]);
    }
    for column in table.column_iter_mut().skip(2) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    format!(
        "\nWhich of {} {} of {} are in {} ({} distinct)? Filters built for {} % false positives.\n{table}\n",
        count(screen.asked.len()),
        screen.noun,
        screen.asked_from,
        screen.set,
        count(screen.distinct),
        FPR * 100.0
    )
}

#[cfg(test)]
mod tests {
    use warpset_benches::text::Lines;

    use super::super::super::clock::Effort;
    use super::super::super::progress::Progress;
    use super::*;

    fn session(input: Input) -> Session {
        Session::new(Effort::Quick, "a processor".into(), Progress::new(1), input).unwrap()
    }

    fn lines(text: &str) -> Lines {
        Lines::read(text.as_bytes()).unwrap()
    }

    #[test]
    fn your_keys_are_all_found_and_others_are_made() {
        let keys: String = (0..2000).map(|i| format!("key {}\n", i % 1500)).collect();
        let mut session = session(Input { present: lines(&keys), ..Input::default() });
        own(&mut session, &[Target::Cpu]).unwrap();
        let (rows, failures, _) = session.finish();
        assert!(failures.is_empty(), "{failures:?}");
        let screens: Vec<&Record> = rows.iter().filter(|row| row.operation == "screen").collect();
        assert!(screens.len() > 4);
        for row in screens {
            assert_eq!((row.n, row.number("truth")), (3000, Some(1500.0)));
            assert!(row.checked && row.fpr.is_some_and(|fpr| fpr < 0.1), "{row:?}");
        }
        assert!(rows.iter().any(|row| row.operation == "screen" && row.peer.is_some()));
    }

    #[test]
    fn words_of_the_large_list_are_held_against_the_small_one() {
        let input = Input { present: lines("a\nb\nc"), asked: lines("c\nx\na\ny\nz"), ..Input::default() };
        let mut session = session(input);
        words(&mut session, &[Target::Cpu]).unwrap();
        let (rows, failures, _) = session.finish();
        assert!(failures.is_empty() && rows.iter().any(|row| row.number("truth") == Some(2.0)), "{failures:?}");
    }

    #[test]
    fn counts_are_held_against_their_expectation() {
        assert!(plausible(0, 0.0) && plausible(84, 84.0) && plausible(120, 84.0));
        assert!(!plausible(0, 84.0) && !plausible(168, 84.0) && !plausible(40_000, 27_000.0));
    }
}
