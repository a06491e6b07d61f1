"""Weaves mutants into a copy of the crate, builds it once, and asks the tests about each. Started by `.ci/mutants`.

`cargo mutants` says which mutants there are. Each becomes a second body of its function, which runs when the environment
says so: `if crate::mutants::on(7) { return { the mutated body }; }` in front of the first body. What does not compile
so is no mutant; a `const fn` cannot ask the environment, and its mutants are not asked about.

Every test runs once by itself, unmutated, and notes the mutants that it comes by. A mutant is asked about by these tests
only: the models that `loom-tests/judges.txt` names for its file, then unit tests, then behaviour tests. A test that
fails or hangs is run again by itself: it must pass without the mutant, and fail or hang with it. Then the mutant is
caught. One that no test notices must stand in `loom-tests/missed.md` with the reason.

Verdicts are kept in target/mutants/verdicts, and a run that was ended goes on where it was. One that was caught is not
asked about again until its file changes, one that was missed is when the tests change. Seconds are counted while
this program runs: it may be stopped together with the tests.
"""

import argparse
import collections
import hashlib
import json
import os
import pathlib
import random
import re
import resource
import signal
import subprocess
import sys
import time

WORK = pathlib.Path('target/mutants').resolve()
TREE = WORK / 'tree'
JUDGES = pathlib.Path('loom-tests/judges.txt')
MISSED = pathlib.Path('loom-tests/missed.md')
SEED = int(os.environ.get('SEED', '7'))
JOBS = os.environ.get('JOBS', '1')
CAUGHT_MIN = 85
COVERED_MIN = 95
# Besides models: unit tests and behaviour tests. They are what coverage is about, too.
OURS = {'lib': ['--lib']} | {
    name: ['--test', name] for name in ('it', 'no_threads', 'old_tables', 'old_tables_blocking', 'properties', 'histories')
}
# What takes longer by itself, in seconds, is no judge.
SECONDS_MAX = float(os.environ.get('SECONDS_MAX', '20'))
# How long it may take to find that out.
LOOK_SECONDS_MAX = 60
# How long tests may take: so many times as long as unmutated, and so many seconds.
PATIENCE = 5
GRACE_SECONDS = 10
# The first tests asked are the most special ones, few at a time: most mutants are caught by them.
BATCHES = (5, 20, 100)
# A mutant may allocate without end.
MEMORY_MAX = 8 << 30

MODULE = '''
#[doc(hidden)]
#[allow(missing_docs)]
pub mod mutants {
    //! Which mutant is on; and, when it is asked for, which ones were come by.
    use std::sync::LazyLock;
    use std::sync::atomic::{AtomicBool, Ordering};

    static REACHED: [AtomicBool; COUNT] = [const { AtomicBool::new(false) }; COUNT];
    static NOTES: LazyLock<Option<String>> = LazyLock::new(|| std::env::var("MUTANTS_REACHED").ok());
    static NUMBER: LazyLock<usize> =
        LazyLock::new(|| std::env::var("MUTANTS_NUMBER").map_or(usize::MAX, |number| number.parse().unwrap()));

    pub fn on(number: usize) -> bool {
        if let Some(notes) = &*NOTES {
            if !REACHED[number].load(Ordering::Relaxed) && !REACHED[number].swap(true, Ordering::Relaxed) {
                use std::io::Write;
                let mut file = std::fs::OpenOptions::new().create(true).append(true).open(notes).unwrap();
                file.write_all(format!("{number}\\n").as_bytes()).unwrap();
            }
        }
        *NUMBER == number
    }
}
'''

# Braces in comments, strings and characters do not count.
TEXT = re.compile(
    r'//[^\n]*|/\*.*?\*/|\bb?r(?P<hashes>#*)".*?"(?P=hashes)|"(?:\\.|[^"\\])*"'
    r"|'(?:\\(?:u\{[^}]*\}|x..|.)|[^\\'\n])'",
    re.DOTALL,
)


def digest(*contents):
    whole = hashlib.sha256()
    for content in contents:
        whole.update(content if isinstance(content, bytes) else content.encode())
    return whole.hexdigest()[:16]


def judges():
    """The models of each file, named `binary::module`: [(binary, prefix of its tests)]."""
    named = {}
    for line in JUDGES.read_text().splitlines():
        if line.startswith('src'):
            file, names = line.split(':', 1)
            named[file] = [(binary, module + '::') for binary, module in (name.split('::') for name in names.split())]
    return named


def mutants_of(files):
    """What `cargo mutants` lists for these files as they are; it takes a while, and is kept."""
    WORK.mkdir(parents=True, exist_ok=True)
    contents = [pathlib.Path(path).read_bytes() for path in ['.cargo/mutants.toml', *files]]
    kept = WORK / f'list-{digest(*contents)}'
    if not kept.exists():
        named = [part for file in files for part in ('--file', file)]
        command = ['cargo', 'mutants', '--list', '--json', '--package', 'pointsman', *named]
        listed = subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout
        write(kept, listed)
    ends = {path: tests_begin(pathlib.Path(path).read_text()) for path in files}
    mutants = json.loads(kept.read_bytes())
    return [mutant for mutant in mutants if mutant['span']['start']['line'] < ends[mutant['file']]]


def tests_begin(text):
    """The line where unit tests begin, which stand at the end of a file; they are no lines of the core."""
    tests = re.search(r'^#\[cfg\((test|all\(test.*)\)\]\nmod \w+ \{', text, re.M)
    return text.count('\n', 0, tests.start()) + 1 if tests else sys.maxsize


class Source:
    """A file, its mutants, and what becomes of it."""

    def __init__(self, path):
        self.path = path
        self.text = pathlib.Path(path).read_text()
        self.digest = digest(self.text)
        self.code = TEXT.sub(lambda found: re.sub(r'[^\n]', ' ', found[0]), self.text)
        self.starts = [0]
        for line in self.text.splitlines(keepends=True):
            self.starts.append(self.starts[-1] + len(line))

    def at(self, place):
        return self.starts[place['line'] - 1] + place['column'] - 1

    def body(self, function):
        """Where the braces of the body of a function are."""
        start, end = self.at(function['span']['start']), self.at(function['span']['end']) - 1
        depth = 0
        for at in range(end, start, -1):
            depth += {'}': 1, '{': -1}.get(self.code[at], 0)
            if depth == 0:
                return at, end
        raise ValueError(f'{self.path}: no body: {function}')

    def is_const(self, mutant):
        function = mutant['function']
        if function is None:
            return True
        head = self.code[self.at(function['span']['start']) : self.body(function)[0]]
        return re.search(r'\bconst\s+(unsafe\s+)?fn\b', head) is not None

    def weave(self, mutants):
        """The text with these mutants, and for each of its lines which mutants it belongs to."""
        inserted = collections.defaultdict(list)
        for mutant in mutants:
            first, last = self.body(mutant['function'])
            start, end = self.at(mutant['span']['start']), self.at(mutant['span']['end'])
            body = self.text[first + 1 : start] + mutant['replacement'] + self.text[end:last]
            text = f'\nif crate::mutants::on({mutant["number"]}) {{ return {{{body}\n}}; }}\n'
            inserted[first + 1].append((mutant['number'], last, text))
        woven, lines, at = '', {}, 0
        for place in sorted(inserted):
            woven += self.text[at:place]
            at = place
            for number, _, text in inserted[place]:
                line = woven.count('\n') + 1
                woven += text
                lines.update({line: [number] for line in range(line + 1, woven.count('\n') + 1)})
            # Its first body: what is wrong there, all of its mutants may be the reason of.
            line = woven.count('\n') + 1
            until = line + self.text.count('\n', place, inserted[place][0][1]) + 1
            for line in range(line, until):
                lines.setdefault(line, [number for number, _, _ in inserted[place]])
        return woven + self.text[at:], lines


def write(path, content):
    """Leaves a file alone that has this content, so that no more is built than must be."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists() or path.read_bytes() != content:
        path.write_bytes(content)


def cargo(arguments):
    """Runs cargo in the tree: its messages, and whether it went well."""
    # A mutant has unused variables and unreachable code.
    wrapper = WORK / 'wrapper'
    write(wrapper, b'#!/bin/sh\nexec "$@" --cap-lints=allow\n')
    wrapper.chmod(0o755)
    environment = os.environ | {
        'CARGO_TARGET_DIR': os.environ.get('CARGO_TARGET_DIR', str(WORK / 'build')),
        'CARGO_INCREMENTAL': '1',
        'RUSTC_WORKSPACE_WRAPPER': str(wrapper),
    }
    options = ['--config=profile.dev.package.pointsman.debug=0', '--message-format=json', '-j', JOBS]
    done = subprocess.run(['cargo', *arguments, *options], cwd=TREE, env=environment, stdout=subprocess.PIPE, text=True)
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith('{')], done.returncode == 0


FEATURES = ['--features', 'config,net,signals,testkit']


def weave(sources, mutants, with_models):
    """Writes the tree, with all mutants that compile. The others get the verdict `unviable`."""
    kept = git_files()
    for path in TREE.rglob('*'):
        if path.is_file() and str(path.relative_to(TREE)) not in kept:
            path.unlink()
    checks = [['check', '-p', 'pointsman', '--lib', *FEATURES]]
    if with_models:
        checks.append(['check', '-p', 'loom-tests', '--lib'])
    # What did not compile the last time does not now.
    known_path = WORK / 'unviable'
    known = set(known_path.read_text().splitlines()) if known_path.exists() else set()
    unviable = {mutant['number'] for mutant in mutants if key(sources, mutant) in known}
    while True:
        places = {}
        for path in kept:
            text = pathlib.Path(path).read_bytes()
            if path in sources:
                of_file = [m for m in mutants if m['file'] == path and m['number'] not in unviable]
                woven, places[path] = sources[path].weave(of_file)
                text = woven.encode()
            if path == 'src/lib.rs':
                text += MODULE.replace('COUNT', str(len(mutants) + 1)).encode()
            write(TREE / path, text)
        wrong = set()
        for check in checks:
            messages, is_ok = cargo(check)
            if is_ok:
                continue
            errors = [m['message'] for m in messages if m.get('reason') == 'compiler-message']
            errors = [error for error in errors if error['level'] == 'error' and error['spans']]
            for error in errors:
                for span in error['spans']:
                    path = span['file_name'].removeprefix('loom-tests/../')
                    if span['is_primary']:
                        wrong.update(places.get(path, {}).get(span['line_start'], []))
            if not wrong - unviable:
                sys.exit('does not compile:\n' + '\n'.join(error['rendered'] for error in errors[:10]))
            break
        if not wrong:
            break
        unviable |= wrong
        print(f'{len(unviable)} do not compile', flush=True)
    known_path.write_text(''.join(key(sources, m) + '\n' for m in mutants if m['number'] in unviable))
    return unviable


def git_files():
    listed = subprocess.run(
        ['git', 'ls-files', '-z', '--cached', '--others', '--exclude-standard', '--', ':!fuzz', ':!benches/peers'],
        check=True, stdout=subprocess.PIPE, text=True,
    ).stdout
    return {path for path in listed.split('\0') if path and pathlib.Path(path).is_file()}


def key(sources, mutant):
    return f'{sources[mutant["file"]].digest} {mutant["name"]}'


FAILED = re.compile(r'^test (\S+)(?: - should panic)? \.\.\. FAILED', re.M)
# Where a test has written to the line of its outcome.
SUMMARY = re.compile(r'^failures:\n    (\S+)$', re.M)
BEGUN = re.compile(r'^test (\S+)(?: - should panic)? \.\.\. ', re.M)


def run(program, folder, tests, seconds, **environment):
    """Runs tests one after the other until one fails: None, or its name; how long it took."""
    def limit():
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_MAX, MEMORY_MAX))
    arguments = [program, '--exact', *tests, '--test-threads=1', '--format=pretty']
    environment = os.environ | {'RUST_BACKTRACE': '0', 'CARGO_MANIFEST_DIR': str(folder)} | environment
    output_path = WORK / f'output.{os.getpid()}'
    with open(output_path, 'w') as output:
        running = subprocess.Popen(
            arguments, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
            start_new_session=True, preexec_fn=limit,
        )
    # Not by the clock: who stops the tests for a while stops this program with them.
    spent, pause, before = 0.0, 0.005, time.monotonic()
    failed = None
    while running.poll() is None and failed is None and spent < seconds:
        time.sleep(pause)
        now = time.monotonic()
        spent += min(now - before, pause + 0.1)
        before, pause = now, min(pause * 1.2, 0.2)
        failed = FAILED.search(output_path.read_text(errors='replace'))
    if running.poll() is None:
        os.killpg(running.pid, signal.SIGKILL)
    running.wait()
    output = output_path.read_text(errors='replace')
    if failed is None and running.returncode == 0:
        return None, spent
    failed = failed or FAILED.search(output) or SUMMARY.search(output)
    if failed is not None:
        return failed[1], spent
    # It hung or broke the process: the last one that began.
    begun = BEGUN.findall(output)
    return (begun[-1] if begun else tests[0]), spent


class Binary:
    """A program of tests, and what each of them comes by."""

    def __init__(self, name, program, package):
        self.name, self.program, self.is_models = name, program, package == 'loom-tests'
        self.folder = TREE / package if self.is_models else TREE
        self.digest = digest(pathlib.Path(program).read_bytes())
        # {test: (seconds, numbers)}
        self.tests = {}
        self.notes = WORK / f'reached-{self.name}-{self.digest}'
        if self.notes.exists():
            for line in self.notes.read_text().splitlines():
                test, seconds, *numbers = line.split()
                self.tests[test] = float(seconds), frozenset(map(int, numbers))
        listed = subprocess.run(
            [self.program, '--list', '--format=terse'], cwd=self.folder, check=True, stdout=subprocess.PIPE, text=True
        ).stdout
        self.listed = re.findall(r'^(\S+): test$', listed, re.M)

    def look(self, prefix):
        """Runs each of these tests by itself, unmutated, unless that was done before."""
        tests = [test for test in self.listed if test.startswith(prefix) and test not in self.tests]
        if not tests:
            return
        reached = WORK / f'reached.{os.getpid()}'
        began = time.monotonic()
        with open(self.notes, 'a') as file:
            for test in tests:
                reached.unlink(missing_ok=True)
                notes_at = {'MUTANTS_REACHED': str(reached)}
                failed, seconds = run(self.program, self.folder, [test], LOOK_SECONDS_MAX, **notes_at)
                if failed and seconds < LOOK_SECONDS_MAX:
                    print(f'{self.name}: {test} fails without any mutant: it judges none', flush=True)
                numbers = reached.read_text().split() if reached.exists() and not failed else []
                self.tests[test] = seconds, frozenset(map(int, numbers))
                print(test, f'{seconds:.3f}', *numbers, file=file, flush=True)
        print(f'{self.name}: {len(tests)} tests, looked at for {time.monotonic() - began:.0f} s', flush=True)

    def asked(self, number, prefix=''):
        """The tests that come by this mutant, the most special ones first."""
        # Only now: there are models that take a while, and judge few files.
        self.look(prefix)
        found = [
            test
            for test, (seconds, numbers) in self.tests.items()
            if number in numbers and seconds <= SECONDS_MAX and test.startswith(prefix)
        ]
        return sorted(found, key=lambda test: (self.tests[test][0] > 1, len(self.tests[test][1]), self.tests[test][0]))


def batches(tests, sizes):
    for size in sizes:
        yield tests[:size]
        tests = tests[size:]
    yield tests


def judge(mutant, binaries, models):
    """By which test this mutant is caught, or None, and how many were asked."""
    number = mutant['number']
    asked = 0
    todo = [(binaries[name], prefix, ()) for name, prefix in models if name in binaries]
    todo += [(binaries[name], '', BATCHES) for name in OURS if name in binaries]
    for binary, prefix, sizes in todo:
        tests = binary.asked(number, prefix)
        for batch in batches(tests, sizes or [1] * len(tests)):
            if not batch:
                continue
            asked += len(batch)
            allowed = lambda tests: GRACE_SECONDS + PATIENCE * sum(binary.tests[test][0] for test in tests)
            while batch:
                failed, _ = run(binary.program, binary.folder, batch, allowed(batch), MUTANTS_NUMBER=str(number))
                if failed is None:
                    break
                # How long it takes now: the machine may be busier than it was at the look.
                wrong, seconds = run(binary.program, binary.folder, [failed], LOOK_SECONDS_MAX)
                seconds = GRACE_SECONDS + PATIENCE * max(seconds, binary.tests.get(failed, (0,))[0])
                again = None
                if wrong is None:
                    again, _ = run(binary.program, binary.folder, [failed], seconds, MUTANTS_NUMBER=str(number))
                if again is not None:
                    return f'{binary.name}::{failed}', asked
                batch = batch[batch.index(failed) + 1 :] if failed in batch else []
    return None, asked


def listed_as_missed():
    """The rows of the table: `| file | mutant | why |`, the mutant without its place in the file, which moves."""
    rows = re.findall(r'^\| `(src/\S+)` \| `((?:\\\||[^|])*)` \|', MISSED.read_text(), re.M)
    return {f'{file}: {mutant}'.replace('\\|', '|') for file, mutant in rows}


def coverage(files):
    """Prints which lines of these files the tests come by."""
    work = pathlib.Path('target/coverage').resolve()
    work.mkdir(parents=True, exist_ok=True)
    for old in work.glob('*.profraw'):
        old.unlink()
    # Dependencies are left as they are.
    wrapper = work / 'wrapper'
    write(wrapper, b'#!/bin/sh\nexec "$@" -Cinstrument-coverage\n')
    wrapper.chmod(0o755)
    environment = os.environ | {
        'RUSTC_WORKSPACE_WRAPPER': str(wrapper),
        # What build scripts and macros note is not asked for.
        'LLVM_PROFILE_FILE': str(work / 'build-%m.ignored'),
    }
    command = ['cargo', 'test', '--no-run', '-p', 'pointsman', '--message-format=json', '-j', JOBS]
    command += [option for options in OURS.values() for option in options]
    built = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE, text=True).stdout
    messages = [json.loads(line) for line in built.splitlines() if line.startswith('{')]
    programs = [message['executable'] for message in messages if message.get('executable')]
    environment = os.environ | {'LLVM_PROFILE_FILE': str(work / '%4m.profraw'), 'CARGO_MANIFEST_DIR': os.getcwd()}
    for program in programs:
        print(pathlib.Path(program).name, flush=True)
        # Its failures are for others to tell: what it came by counts.
        done = subprocess.run([program], env=environment, stdout=subprocess.PIPE, text=True).stdout
        print(re.findall('^test result: .*', done, re.M), re.findall('^test .*FAILED$', done, re.M), flush=True)
    verbose = subprocess.run(['rustc', '-vV'], check=True, stdout=subprocess.PIPE, text=True).stdout
    sysroot = subprocess.run(['rustc', '--print', 'sysroot'], check=True, stdout=subprocess.PIPE, text=True).stdout
    tools = pathlib.Path(sysroot.strip(), 'lib/rustlib', re.search('host: (.*)', verbose)[1], 'bin')
    notes = [str(path) for path in work.glob('*.profraw')]
    subprocess.run([tools / 'llvm-profdata', 'merge', '--sparse', '-o', work / 'merged', *notes], check=True)
    objects = [part for program in programs for part in ('--object', program)]
    exported = subprocess.run(
        [tools / 'llvm-cov', 'export', '--format=lcov', f'--instr-profile={work}/merged', *objects],
        check=True, stdout=subprocess.PIPE, text=True,
    ).stdout

    counts = collections.defaultdict(dict)
    for line in exported.splitlines():
        if line.startswith('SF:'):
            path = os.path.relpath(line[3:].strip())
        elif line.startswith('DA:'):
            number, count = map(int, line[3:].split(',')[:2])
            counts[path][number] = max(count, counts[path].get(number, 0))
    all_lines = all_covered = 0
    for path in files:
        text = pathlib.Path(path).read_text()
        lines = {number: count for number, count in counts[path].items() if number < tests_begin(text)}
        if not lines:
            continue
        missing = sorted(number for number, count in lines.items() if count == 0)
        covered = len(lines) - len(missing)
        all_lines, all_covered = all_lines + len(lines), all_covered + covered
        places = ' '.join(map(str, missing))
        print(f'{100 * covered / len(lines):6.1f} %  {covered:5} of {len(lines):5}  {path}  {places}')
    print(f'{100 * all_covered / all_lines:6.1f} %  of {all_lines} lines of the core')
    sys.exit(100 * all_covered < COVERED_MIN * all_lines)


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument('--sample', type=int)
    arguments.add_argument('--list', action='store_true')
    arguments.add_argument('--by', default=','.join(['models', *OURS]))
    arguments.add_argument('--coverage', action='store_true')
    arguments.add_argument('files', nargs='+')
    arguments = arguments.parse_args()
    if arguments.coverage:
        coverage(arguments.files)

    mutants = mutants_of(arguments.files)
    kinds = arguments.by.split(',')
    models = judges() if 'models' in kinds else {}
    if arguments.list:
        per_file = collections.Counter(mutant['file'] for mutant in mutants)
        for file, count in sorted(per_file.items()):
            print(f'{count:4}  {file}', *(binary + '::' + module.rstrip(':') for binary, module in models.get(file, [])))
        print(f'{len(mutants):4}  in all')
        return
    in_all = len(mutants)
    sources = {file: Source(file) for file in {mutant['file'] for mutant in mutants}}
    if arguments.sample is not None and arguments.sample < in_all:
        # In the order drawn: of a run that was ended, what it has judged is a fair sample too.
        mutants = random.Random(SEED).sample(mutants, arguments.sample)
    drawn = len(mutants)
    constant = [mutant for mutant in mutants if sources[mutant['file']].is_const(mutant)]
    woven = [mutant for mutant in mutants if not sources[mutant['file']].is_const(mutant)]
    for number, mutant in enumerate(woven):
        mutant['number'] = number
    print(f'{drawn} of {in_all} mutants, seed {SEED}; {len(constant)} in constants are not asked about', flush=True)

    wanted = sorted({name for mutant in woven for name, _ in models.get(mutant['file'], [])})
    unviable = weave(sources, woven, bool(wanted))
    woven = [mutant for mutant in woven if mutant['number'] not in unviable]
    builds = [['-p', 'pointsman', *options] for name, options in OURS.items() if name in kinds]
    if wanted:
        builds.append(['-p', 'loom-tests', *(part for name in wanted for part in ('--test', name))])
    binaries = {}
    for build in builds:
        messages, is_ok = cargo(['test', '--no-run', *build])
        if not is_ok:
            rendered = [m['message']['rendered'] for m in messages if 'message' in m]
            sys.exit('does not build:\n' + '\n'.join(rendered)[-4000:])
        for message in messages:
            if message.get('executable') and message['profile']['test']:
                name = 'lib' if 'lib' in message['target']['kind'] else message['target']['name']
                binaries[name] = Binary(name, message['executable'], build[1])

    tests = digest(str(SECONDS_MAX), *(binary.digest for binary in binaries.values()))
    verdicts_path = WORK / 'verdicts'
    verdicts = {}
    if verdicts_path.exists():
        for line in verdicts_path.read_text().splitlines():
            verdict = json.loads(line)
            verdicts[verdict['key']] = verdict
    with open(verdicts_path, 'a') as file:
        for mutant in woven:
            known = verdicts.get(key(sources, mutant))
            if known and (known['by'] or known['tests'] == tests):
                continue
            began = time.monotonic()
            by, asked = judge(mutant, binaries, models.get(mutant['file'], []))
            verdict = {'key': key(sources, mutant), 'by': by, 'asked': asked, 'tests': tests}
            verdicts[verdict['key']] = verdict
            print(json.dumps(verdict), file=file, flush=True)
            said = f'caught by {by}' if by else f'MISSED by {asked} tests' if asked else 'MISSED: no test comes by'
            print(f'{mutant["name"]}: {said}, {time.monotonic() - began:.1f} s', flush=True)

    report(sources, woven, verdicts, models, len(unviable))


def report(sources, woven, verdicts, models, unviable):
    print()
    is_right = True
    known = listed_as_missed()
    of_file = collections.defaultdict(list)
    for mutant in woven:
        of_file[mutant['file']].append((mutant, verdicts[key(sources, mutant)]))
    caught = by_models = of_models = 0
    for file, judged in sorted(of_file.items()):
        of_this = sum(verdict['by'] is not None for _, verdict in judged)
        caught += of_this
        print(f'{of_this:4} of {len(judged):4} caught  {file}')
        if file in models:
            of_models += len(judged)
            by_models += sum(
                verdict['by'] is not None and verdict['by'].split('::')[0] not in OURS for _, verdict in judged
            )
        for mutant, verdict in judged:
            name = re.sub(r'^([^:]*):\d+:\d+: ', r'\1: ', mutant['name'])
            if verdict['by'] is None and name not in known:
                is_right = False
                print(f'    not in {MISSED}: {name}')
    if not woven:
        sys.exit('no mutants')
    print(f'{caught} of {len(woven)} caught: {100 * caught / len(woven):.1f} %; {unviable} more do not compile')
    if of_models:
        print(f'{by_models} of the {of_models} in files with models were caught by these')
    sys.exit(not is_right or 100 * caught < CAUGHT_MIN * len(woven))


main()
