//! The screens: genomes, words, or the user's keys, asked of every variant and of the peers.

use std::collections::HashSet;

use super::peers::Peer;
use super::plausible;
use super::subject::{Keys, Subject};
use super::variant::Variant;
use bench_frame::screen::{FPR, Said, Screen};
use bench_frame::suite::{Session, Setup, Step, Target, Threads};

/// Makes the screens on genomes and on words, in this order.
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

fn genomes(session: &mut Session, targets: &[Target]) -> anyhow::Result<()> {
    let input = session.input();
    let Some((reference, samples)) = input.genomes.split_first() else { return Ok(()) };
    for sample in samples {
        let (screen, asked) = Screen::of_genomes("bloom", reference, sample);
        run(session, targets, &screen, Keys::U64(&reference.kmers), Keys::U64(&asked))?;
    }
    Ok(())
}

fn words(session: &mut Session, targets: &[Target]) -> anyhow::Result<()> {
    let input = session.input();
    let names = ["words", "words", "the common ones", "a large English list"];
    of_files(session, targets, names, &input.present.slices(), &input.asked.slices())
}

/// Screens the user's keys, and those of a second file; without one, the same number of absent keys: each key with a
/// byte more.
fn own(session: &mut Session, targets: &[Target]) -> anyhow::Result<()> {
    let input = session.input();
    let present = input.present.slices();
    if !input.asked.is_empty() {
        let names = ["your keys", "keys", "your file", "your second file"];
        return of_files(session, targets, names, &present, &input.asked.slices());
    }
    let known: HashSet<&[u8]> = present.iter().copied().collect();
    let longer: Vec<Vec<u8>> = known.iter().map(|key| [key, &b"~"[..]].concat()).collect();
    let mut shared: Vec<&[u8]> = known.iter().copied().collect();
    shared.sort_unstable();
    let absent: Vec<&[u8]> = longer.iter().map(Vec::as_slice).filter(|key| !known.contains(key)).collect();
    let names = ["your keys", "distinct keys", "your file", "your file"];
    of_bytes(session, targets, names, &present, Asked { distinct: known.len(), made: absent.len(), shared, absent })
}

/// Screens keys of the user, all of which are looked up.
fn of_files(
    session: &mut Session,
    targets: &[Target],
    names: [&str; 4],
    present: &[&[u8]],
    asked: &[&[u8]],
) -> anyhow::Result<()> {
    let known: HashSet<&[u8]> = present.iter().copied().collect();
    let (shared, absent) = asked.iter().partition(|key| known.contains(*key));
    of_bytes(session, targets, names, present, Asked { distinct: known.len(), made: 0, shared, absent })
}

/// Keys to look up.
struct Asked<'a> {
    /// Distinct keys in the set.
    distinct: usize,
    /// Number of generated keys among the absent ones.
    made: usize,
    shared: Vec<&'a [u8]>,
    absent: Vec<&'a [u8]>,
}

fn of_bytes(
    session: &mut Session,
    targets: &[Target],
    [input, noun, set, asked_from]: [&str; 4],
    present: &[&[u8]],
    Asked { distinct, made, shared, absent }: Asked<'_>,
) -> anyhow::Result<()> {
    let asked = [&shared[..], &absent].concat();
    let screen = Screen {
        structure: "bloom",
        input: input.into(),
        noun,
        key: "string",
        set,
        asked_from,
        distinct,
        asked: asked.len(),
        made,
        shared: shared.len(),
    };
    run(session, targets, &screen, Keys::Bytes(present), Keys::Bytes(&asked))
}

fn run(
    session: &mut Session,
    targets: &[Target],
    screen: &Screen<'_>,
    present: Keys<'_>,
    asked: Keys<'_>,
) -> anyhow::Result<()> {
    let mut filters: Vec<(&Target, String, bool, Box<dyn Subject>)> = Vec::new();
    for target in targets {
        for variant in Variant::for_screens() {
            filters.push((target, variant.name(), false, variant.for_capacity(target, screen.distinct, FPR)?));
        }
    }
    if targets.contains(&Target::Cpu) {
        for peer in Peer::ALL.iter().filter(|peer| peer.inserts_in_parallel()) {
            filters.push((&Target::Cpu, peer.name(), true, peer.for_capacity(screen.distinct, FPR)?));
        }
    }
    let mut lines = Vec::new();
    for (target, name, peer, mut filter) in filters {
        // Inserting again changes nothing, so the filter need not be emptied between repeats.
        let build = session.time(Threads::All, &mut filter, |filter| filter.insert(present))?;
        let mut answers = vec![false; asked.len()];
        let query = session.time(Threads::All, &mut answers, |answers| filter.contains(asked, answers))?;
        let others = (screen.asked - screen.shared) as f64;
        let said = Said {
            name,
            peer,
            operation: "insert",
            inserted: present.len(),
            threads: Threads::All,
            build,
            query,
            bits: 8.0 * filter.bytes() as f64,
            hashes: filter.hashes(),
            expected: filter.theory(screen.distinct).map(|rate| rate * others),
            agrees: plausible,
            answers,
        };
        lines.push(screen.judge(session, target, &said));
    }
    screen.print(session, lines);
    Ok(())
}

#[cfg(test)]
mod tests {
    use bench_frame::input::text::Lines;

    use super::*;
    use bench_frame::suite::Input;
    use bench_record::Record;

    fn lines(text: &str) -> Lines {
        Lines::read(text.as_bytes()).unwrap()
    }

    #[test]
    fn your_keys_are_all_found_and_others_are_made() {
        let keys: String = (0..2000).map(|i| format!("key {}\n", i % 1500)).collect();
        let input = Input { present: lines(&keys), ..Input::default() };
        let rows = Session::rows_with(input, vec![Step::new("own", |session| own(session, &[Target::Cpu]))]);
        let screens: Vec<&Record> = rows.iter().filter(|row| row.operation == "screen").collect();
        assert!(screens.len() > 4);
        for row in screens {
            assert_eq!((row.n, row.number("truth")), (3000, Some(1500.0)));
            assert!(row.checked && row.fpr.is_some_and(|fpr| fpr < 0.1), "{row:?}");
        }
        assert!(rows.iter().any(|row| row.operation == "screen" && row.peer.is_some()));
    }

    #[test]
    fn keys_of_a_second_file_are_asked_as_they_are() {
        let input = Input { present: lines("a\nb\nc\nb"), asked: lines("c\nx\nc\nz\ny"), ..Input::default() };
        let rows = Session::rows_with(input, vec![Step::new("own", |session| own(session, &[Target::Cpu]))]);
        let screens: Vec<&Record> = rows.iter().filter(|row| row.operation == "screen").collect();
        assert!(screens.len() > 4);
        assert!(screens.iter().all(|row| (row.n, row.number("truth")) == (5, Some(2.0))), "{screens:?}");
    }

    #[test]
    fn words_of_the_large_list_are_held_against_the_small_one() {
        let input = Input { present: lines("a\nb\nc"), asked: lines("c\nx\na\ny\nz"), ..Input::default() };
        let rows = Session::rows_with(input, vec![Step::new("words", |session| words(session, &[Target::Cpu]))]);
        assert!(rows.iter().any(|row| row.number("truth") == Some(2.0)));
    }
}
