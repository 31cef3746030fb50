//! Scaling of builds over threads, beside the machine's limits. Three kinds of builds take turns, so that all see the
//! machine in the same state:
//!
//! - *alone*: one thread builds from all keys;
//! - *beside*: every thread builds from an equal part of the keys, a function of its own. The builds share nothing but
//!   the machine, so what they lose against *alone* is the machine's;
//! - *together*: one build from all keys on all threads.
//!
//! Parameters of a row are its ratio to linear scaling and, of *together*, its ratio to *beside*: what the program
//! makes of what the machine gives.

use std::hint::black_box;
use std::sync::Barrier;
use std::time::Instant;

use bench_frame::input::keys::KeySpace;
use rayon::{ThreadPool, ThreadPoolBuilder};
use warpset_mphf::{Builder, Method, RecSplit};

use super::{SEED, Settings};
use bench_frame::clock::median;
use bench_frame::machine;
use bench_frame::suite::{Session, Step, Target, Threads};
use bench_record::Record;

/// Turns of each kind.
const TURNS: usize = 7;
/// The least seconds of each turn: builds are repeated.
const TURN: f64 = 0.25;

/// Makes one step per shape and number of keys; all turns take a minute.
pub fn steps(chosen: &[Settings]) -> Vec<Step> {
    let shapes = [
        (Settings::new(5, 5, Method::Rotation), 4_000_000),
        (Settings::new(8, 100, Method::Rotation), 4_000_000),
        (Settings::new(12, 9, Method::Rotation), 2_000_000),
        (Settings::new(8, 100, Method::Grouped), 4_000_000),
        (Settings::new(16, 2000, Method::Grouped), 1_000_000),
    ];
    let asked: Vec<_> = chosen.iter().map(|&settings| (settings, 1_000_000)).collect();
    let shapes = if asked.is_empty() { shapes.into() } else { asked };
    let step = Step::new("recsplit: scaling over threads", move |session| {
        shapes.into_iter().try_for_each(|(settings, n)| measure(session, settings, n))
    });
    vec![step.except_quick()]
}

/// Measures the seconds per build over `repeats` builds; returns the last function too.
fn time(builder: &Builder, pool: &ThreadPool, keys: &[u64], repeats: usize) -> anyhow::Result<(f64, RecSplit)> {
    pool.install(|| {
        let start = Instant::now();
        (1..repeats).for_each(|_| _ = black_box(builder.build_from(keys)));
        let function = builder.build_from(keys)?;
        Ok((start.elapsed().as_secs_f64() / repeats as f64, function))
    })
}

/// Returns the mean seconds of one build of a part beside the others.
fn time_beside(builder: &Builder, pools: &[ThreadPool], keys: &[u64], repeats: usize) -> anyhow::Result<f64> {
    let start = Barrier::new(pools.len());
    let parts = keys.chunks_exact(keys.len() / pools.len());
    let times: Vec<anyhow::Result<f64>> = std::thread::scope(|scope| {
        let work = |(pool, keys)| {
            let start = &start;
            scope.spawn(move || {
                start.wait();
                Ok(time(builder, pool, keys, repeats)?.0)
            })
        };
        let workers: Vec<_> = pools.iter().zip(parts).map(work).collect();
        workers.into_iter().map(|worker| worker.join().unwrap_or_else(|_| anyhow::bail!("a build panicked"))).collect()
    });
    let times = times.into_iter().collect::<anyhow::Result<Vec<f64>>>()?;
    Ok(times.iter().sum::<f64>() / times.len() as f64)
}

fn measure(session: &mut Session, settings: Settings, n: usize) -> anyhow::Result<()> {
    let threads = machine::threads();
    let pool = |threads| ThreadPoolBuilder::new().num_threads(threads).build();
    let all = pool(threads)?;
    let pools = (0..threads).map(|_| pool(1)).collect::<Result<Vec<_>, _>>()?;
    let builder = settings.builder();
    let keys = KeySpace::new(SEED).stream(3).u64_keys(n);
    let (once, function) = time(&builder, &all, &keys, 1)?;
    let repeats = |once: f64| (TURN / once).ceil() as usize;
    let (few, many) = (repeats(once * threads as f64), repeats(once));
    let (mut times, mut same) = ([const { Vec::new() }; 3], true);
    for _ in 0..TURNS {
        let (alone, mine) = time(&builder, &pools[0], &keys, few)?;
        same &= mine == function;
        let (together, mine) = time(&builder, &all, &keys, many)?;
        same &= mine == function;
        times[0].push(alone);
        times[1].push(time_beside(&builder, &pools, &keys, many)?);
        times[2].push(together);
    }
    let [alone, beside, together] = times.map(|mut times| median(&mut times));
    let kinds = [
        ("build alone", alone, Threads::One),
        ("build beside", beside, Threads::All),
        ("build together", together, Threads::All),
    ];
    for (operation, seconds, on) in kinds {
        let mut row = Record::new("recsplit", operation, n).time(seconds).by(settings.name(), false);
        row = row.param("leaf", settings.leaf).param("bucket", settings.bucket).param("study", "scaling");
        if on == Threads::All {
            row = row.param("of_linear", alone / threads as f64 / seconds);
        }
        if operation == "build together" {
            row = row.param("of_beside", beside / seconds);
        }
        session.add(&Target::Cpu, on, row, same);
    }
    Ok(())
}
