# SPDX-License-Identifier: BSD-3-Clause
"""What run_glue_mutants and run_engine_mutants have in common: a program or library of a build folder is made anew
with some of its sources changed, and a named test has to notice.

A mutant is (name, what is broken, its test, [(text, replacement)...]). A text must occur in all of the sources
exactly once, wherever that is: files may be moved and renamed, but a mutant whose text has gone is stale and counts
as failed. Only the objects that the change reaches are compiled anew."""
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

import mutant_text  # a neighbour, no package

TOP = os.path.abspath(os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", ".."))
TRIES = 3  # of a mutant's own test: threads interleave as they like


class Stale(Exception):
    """A mutant that does not fit the sources any more."""


# ---- the sources ----------------------------------------------------------------------

def read_sources(folder, others=()):
    """Path below TOP -> text of every C source in the folder but in these folders of it."""
    texts = {}
    for at, folders, names in os.walk(os.path.join(TOP, folder)):
        folders[:] = [f for f in folders if at != os.path.join(TOP, folder) or f not in others]
        for name in names:
            if name.endswith((".c", ".h")):
                path = os.path.join(at, name)
                with open(path, encoding="utf-8") as file:
                    texts[os.path.relpath(path, TOP)] = file.read()
    return texts


def place(texts, name, old):
    """The only file that has this text, once."""
    found = [(path, text.count(old)) for path, text in texts.items() if old in text]
    if not found:  # not as it stands: in another layout then
        found = [(path, len(mutant_text.find(text, old))) for path, text in texts.items()]
        found = [(path, times) for path, times in found if times > 0]
    if not found:
        raise Stale(f"mutant {name} is stale: this text is in no source any more; adapt the mutant:\n{old}")
    if len(found) > 1 or found[0][1] > 1:
        raise Stale(f"mutant {name} is ambiguous: this text occurs in "
                    f"{', '.join(f'{path} ({count} times)' for path, count in found)}; make it longer:\n{old}")
    return found[0][0]


def mutate(texts, name, edits):
    changed = {}
    for old, new in edits:
        path = place(texts, name, old)
        changed[path], _ = mutant_text.replace(changed.get(path, texts[path]), old, new)
    return changed


# ---- how they are built ---------------------------------------------------------------

def run(command, **more):
    return subprocess.run(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False, **more)


class Product:
    """A program, or a library, as the build folder makes it: commands, objects, and what each was made from.

    `recipe` is a target of make's that prints four lines: 'compile', 'link', 'objects' and 'libs', and what belongs
    to each. `folders` are where its sources look for headers, below TOP; `also`: sources that it has in a library,
    and that may be changed all the same."""

    def __init__(self, build, target, recipe, folders, also=()):
        self.build, self.target, self.folders, self.also = build, target, folders, also
        told = run(["make", "-s", "--no-print-directory", recipe], cwd=build)
        words = dict(line.split(" ", 1) for line in told.stdout.splitlines() if " " in line)
        if told.returncode != 0 or len(words) != 4:
            sys.exit(f"{os.path.basename(sys.argv[0])}: `make {recipe}` in {build} does not tell:\n{told.stdout}")
        self.compile, self.link, self.libs = (shlex.split(words[k]) for k in ("compile", "link", "libs"))
        self.objects = words["objects"].split()
        self.sources = {obj: self.read_dependencies(obj) for obj in self.objects}

    def read_dependencies(self, obj):
        """The source of an object, then its headers, below TOP."""
        stem, kind = os.path.splitext(os.path.basename(obj))
        path = os.path.join(self.build, os.path.dirname(obj), ".deps", f"{stem}.P{kind[1:]}")
        with open(path, encoding="utf-8") as file:
            words = file.read().replace("\\\n", " ").split("\n", 1)[0].split()[1:]
        return [os.path.relpath(os.path.join(self.build, word), TOP) for word in words]

    def reaches(self, changed):
        """Whether the changed files are in it."""
        return any(set(sources) & set(changed) for sources in self.sources.values())

    def make(self, overlay, name, texts, changed):
        """Links it with the changed files; its path."""
        for path, text in texts.items():
            os.makedirs(os.path.dirname(os.path.join(overlay, path)), exist_ok=True)
            with open(os.path.join(overlay, path), "w", encoding="utf-8") as file:
                file.write(changed.get(path, text))
        made, kept = [], []
        for obj in self.objects:
            if set(self.sources[obj]) & set(changed):
                made.append(self.compile_one(overlay, name, self.sources[obj][0], len(made)))
            else:
                kept.append(self.object_of(obj))
        for path in set(changed) & set(self.also):  # before the library that has it as well
            made.append(self.compile_one(overlay, name, path, len(made)))
        if not made:
            raise Stale(f"mutant {name} changes nothing that {self.target} is made of")
        product = os.path.join(overlay, self.target)
        linked = run(self.link + ["-o", product] + made + kept + self.libs, cwd=self.build)
        if linked.returncode != 0:
            raise Stale(f"mutant {name} does not link:\n{linked.stdout}")
        return product

    @staticmethod
    def object_of(obj):
        """libtool's .lo is a note; what goes into a shared library lies beside it."""
        stem, kind = os.path.splitext(obj)
        return obj if kind == ".o" else os.path.join(os.path.dirname(stem), ".libs", os.path.basename(stem) + ".o")

    def compile_one(self, overlay, name, source, number):
        """Sources and headers of the overlay come before those that they are copies of."""
        theirs = os.path.join(overlay, source)
        obj = os.path.join(overlay, f"{number}.o")
        words = next(i for i, word in enumerate(self.compile) if word.startswith("-"))  # "ccache gcc" are two
        built = run(self.compile[:words] +
                    [word for folder in self.folders for word in ("-I", os.path.join(overlay, folder))] +
                    ["-iquote", os.path.dirname(os.path.join(TOP, source))] +
                    self.compile[words:] + ["-O1", "-w", "-c", "-o", obj,
                                            theirs if os.path.exists(theirs) else os.path.join(TOP, source)],
                    cwd=self.build)
        if built.returncode != 0:
            raise Stale(f"mutant {name} does not compile:\n{built.stdout}")
        return obj


# ---- running --------------------------------------------------------------------------

def run_test(command, env, what, seconds):
    """What is wrong with it, or None; tests that ran."""
    with subprocess.Popen(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          start_new_session=True, errors="replace", env=env) as process:
        try:
            output = process.communicate(timeout=seconds)[0]
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            return f"{what} hangs", 1
    if process.returncode < 0:
        return f"{what} crashes: {signal.Signals(-process.returncode).name}", 1
    ran = len(re.findall(r"^\[ +RUN +\]", output, re.M))
    if process.returncode == 0:
        return None, ran
    failed = re.findall(r"\[ +FAILED +\] (test_\w+)", output)
    why = re.search(r"(\[ +(?:ERROR|LINE) +\] .*|.*(?:[Aa]ssert|error|[Ff]ail).*)", output)
    return f"{failed[0] if failed else what}: {why[1] if why else f'status {process.returncode}'}", ran


class Bench:
    """Mutants, and the tests that have to notice them.

    judge_own(overlay, name, changed, test) makes what is broken and returns a function that runs the mutant's test
    once: what is wrong, or None. run_unbroken(test) gives what run_test() does. look_further(overlay): what notices
    it else, or None."""

    def __init__(self, texts, mutants, judge_own, run_unbroken, look_further=None):
        self.texts, self.mutants = texts, mutants
        self.judge_own, self.run_unbroken, self.look_further = judge_own, run_unbroken, look_further
        self.work, self.is_kept = None, False

    def judge(self, mutant):
        name, meaning, test, edits = mutant
        overlay = os.path.join(self.work, name)
        try:
            once = self.judge_own(overlay, name, mutate(self.texts, name, edits), test)
            for number in range(TRIES):
                wrong = once()
                if wrong:
                    late = f" (try {number + 1})" if number else ""
                    return True, f"killed    {name}: {meaning}{late}\n          {wrong}"
            wrong = self.look_further(overlay) if self.look_further else None
        except Stale as error:
            return False, f"FAILED    {name}: {error}"
        finally:
            if not self.is_kept:
                shutil.rmtree(overlay, ignore_errors=True)
        if wrong:
            return False, f"MISSED    {name}: {meaning}\n          not by {test}, but by chance: {wrong}"
        return False, f"SURVIVED  {name}: {meaning}\n          {test} passes"

    def judge_unbroken(self, test):
        for _ in range(TRIES):  # a busy machine is no fault
            wrong, ran = self.run_unbroken(test)
            if ran == 0:
                return False, f"FAILED    unbroken: there is no test {test}"
            if not wrong:
                return True, f"passed    unbroken: {test}"
        return False, f"FAILED    unbroken: {wrong}"

    def run(self, jobs, keep):
        """Exit status."""
        self.work = os.path.abspath(keep or tempfile.mkdtemp(prefix="ha_mutants."))
        self.is_kept = keep is not None
        tasks = [(self.judge_unbroken, test) for test in sorted({m[2] for m in self.mutants})]
        tasks += [(self.judge, mutant) for mutant in self.mutants]
        passed, again, bad = 0, [], []
        try:
            with ThreadPoolExecutor(jobs) as pool:
                for task, job in [(task, pool.submit(*task)) for task in tasks]:
                    good, text = job.result()
                    print(text, flush=True)
                    passed, again = passed + good, again + ([] if good else [task])
            for function, argument in again:  # alone: threads that share a processor interleave as chance has it
                good, text = function(argument)
                print(f"alone     {text}", flush=True)
                passed, bad = passed + good, bad + ([] if good else [text])
        finally:
            if not self.is_kept:
                shutil.rmtree(self.work, ignore_errors=True)
        if bad:  # again, where who reads the end of a long log sees it
            print("\n".join(bad))
        print(f"{passed} passed, {len(bad)} failed, 0 skipped")
        return bool(bad)

    def show(self):
        for name, meaning, test, edits in self.mutants:
            try:
                where = ", ".join(sorted({place(self.texts, name, old) for old, _ in edits}))
            except Stale as error:
                where = str(error).split(":", 1)[0]
            print(f"{name:26} {meaning}\n{'':26} {where}; {test}")


# ---- the command line -----------------------------------------------------------------

def options(usage, mutants, flags):
    """What was asked for: build, jobs, keep, the flags, and of the mutants those that are meant."""
    me, args = os.path.basename(sys.argv[0]), sys.argv[1:]
    chosen = {"build": os.getcwd(), "jobs": str(os.cpu_count() or 1), "keep": None, "part": "1/1"}
    chosen.update({flag: False for flag in flags})
    names = []
    while args:
        arg = args.pop(0)
        if arg in ("--help", "-h"):
            print(usage.strip())
            sys.exit(0)
        if arg.startswith("--") and arg[2:] in flags:
            chosen[arg[2:]] = True
        elif arg in ("--build", "--jobs", "--keep", "--part"):
            if not args:
                sys.exit(f"{me}: {arg} needs a value. Try --help.")
            chosen[arg[2:]] = args.pop(0)
        elif arg in [mutant[0] for mutant in mutants]:
            names.append(arg)
        else:
            sys.exit(f"{me}: there is no mutant or option '{arg}'. Try --list or --help.")
    if not chosen["jobs"].isdigit() or int(chosen["jobs"]) < 1:
        sys.exit(f"{me}: --jobs '{chosen['jobs']}' is not a number above 0")
    part = re.fullmatch(r"([1-9]\d*)/([1-9]\d*)", chosen["part"])
    if not part or int(part[1]) > int(part[2]):
        sys.exit(f"{me}: --part '{chosen['part']}' is not one of so many, such as 1/3")
    chosen["jobs"] = int(chosen["jobs"])
    chosen["build"] = os.path.abspath(chosen["build"])
    chosen["mutants"] = [m for m in mutants if not names or m[0] in names][int(part[1]) - 1::int(part[2])]
    return chosen
