"""The installed program and the texts that it generates."""

import pathlib
import re
import shutil
import subprocess

import program

ROOT = pathlib.Path(__file__).resolve().parents[2]


class Texts(program.Case):
    """Generated texts of the program."""

    def test_version(self):
        self.assertRegex(self.succeed("--version").stdout, r"\Aattend \d+\.\d+\.\d+\n\Z")

    COMPLETIONS = (("attend tr", ["train"]), ("attend data im", ["images"]),
                   ("attend train --vali", ["--valid", "--valid-target"]),
                   ("attend data images --js", ["--json"]), ("attend train x", []))

    def test_completion(self):
        script = self.succeed("completion").stdout
        self.write("attend.bash", script)
        for words, wanted in self.COMPLETIONS:
            with self.subTest(words=words):
                line = words.split()
                run = subprocess.run(
                    ["bash", "-c", "source attend.bash && COMP_WORDS=(\"$@\") && "
                     "COMP_CWORD=$(($# - 1)) && _attend && printf '%s\\n' \"${COMPREPLY[@]}\"",
                     "bash", *line], cwd=self.folder, capture_output=True, text=True)
                self.assertEqual((run.returncode, run.stderr), (0, ""))
                self.assertEqual(run.stdout.split(), wanted)

    def test_completion_for_zsh(self):
        self.write("_attend", self.succeed("completion", "--shell", "zsh").stdout)
        # Functions in place of zsh's print the choices, without filtering by a prefix.
        source = ("compdef() {}; _files() {}; _describe() { print -l -- ${${(P)@[-1]}%%:*} }; "
                  "source ./_attend; words=($@); CURRENT=$#; _attend")
        for words, wanted in self.COMPLETIONS:
            with self.subTest(words=words):
                line = words.split()
                run = subprocess.run(["zsh", "-f", "-c", source, "zsh", *line], cwd=self.folder,
                                     capture_output=True, text=True)
                self.assertEqual((run.returncode, run.stderr), (0, ""))
                offered = [word for word in run.stdout.split() if word.startswith(line[-1])]
                self.assertEqual(offered, wanted)

    def test_completion_for_an_unknown_shell(self):
        self.refuse("completion", "--shell", "fish", names=["--shell", "fish", "bash", "zsh"])

    def test_manual(self):
        self.succeed("manual", ".")
        pages = {path.name: path.read_text(encoding="utf-8") for path in self.folder.iterdir()}
        commands = re.findall(r"(?m)^  (\w+)  ", self.succeed("--help").stdout.split("Subcommands:")[1])
        self.assertGreater(len(commands), 10)
        self.assertNotIn("manual", commands)
        for name in ("attend.1", "attend-data-bpe-apply.1", *(f"attend-{each}.1" for each in commands)):
            self.assertIn(name, pages)
        with self.subTest("all that --help says of a command"):
            page = pages["attend-data-images.1"].replace("\\-", "-")
            usage = self.succeed("data", "images", "--help").stdout
            for option in re.findall(r"--[a-z-]+", usage):
                self.assertIn(option, page)
        for name in pages.keys() - {"attend.1"}:
            with self.subTest(name):
                self.assertIn(".SH EXAMPLES\n", pages[name])
        run = subprocess.run(["groff", "-man", "-ww", "-Tutf8", "-Kutf8", "-z", *pages], cwd=self.folder,
                             capture_output=True, text=True)
        self.assertEqual((run.returncode, run.stderr), (0, ""))


class Install(program.Case):
    def test_what_the_demo_builds(self):
        """`./dev demo` builds the program and its libraries, but not the operator for PyTorch."""
        built = pathlib.Path(program.PROGRAM).resolve().parent
        run = subprocess.run(["cmake", "-S", ROOT, "-B", "build", "-G", "Ninja", "-DATTEND_TESTS=OFF"],
                             cwd=self.folder, capture_output=True, text=True)
        self.assertEqual(run.returncode, 0, run.stderr)
        for path in (built / "attend", *built.glob("libattend_*.a")):
            shutil.copy(path, self.folder / "build")
        run = subprocess.run(["cmake", "--install", "build", "--prefix", "prefix"], cwd=self.folder,
                             capture_output=True, text=True)
        self.assertEqual(run.returncode, 0, run.stderr)
        prefix = self.folder / "prefix"
        installed = {str(path.relative_to(prefix)) for path in prefix.rglob("*")}
        for name in ("bin/attend", "share/man/man1/attend-train.1", "share/attend/recipes/demo.toml",
                     "share/bash-completion/completions/attend", "share/zsh/site-functions/_attend"):
            self.assertIn(name, installed)
        self.assertIn("attend.pc", {path.name for path in prefix.rglob("*")})
        run = subprocess.run([prefix / "bin/attend", "train", "--recipe", "demo", "--dump-config"],
                             cwd=self.folder, env=program.environment(), capture_output=True, text=True)
        self.assertEqual(run.returncode, 0, run.stderr)


if __name__ == "__main__":
    program.main()
