package shell

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// texts returns the commands of a line as text.
func texts(l *Line) []string {
	list := make([]string, 0, len(l.Commands))
	for _, c := range l.Commands {
		list = append(list, c.Text)
	}
	return list
}

// TestCommands says what lines run. "?" stands for a line that is unresolved,
// too.
func TestCommands(t *testing.T) {
	var reader Reader
	for line, want := range map[string]string{
		"":                                  "",
		"  # nothing":                       "",
		"a=1":                               "",
		"ls -l /tmp":                        "ls -l /tmp",
		"/usr/bin/git status":               "git status",
		"a; b && c || d | e & f":            "a|b|c|d|e|f",
		"echo 'rm -rf /' \"a b\" c\\ d":     "echo rm -rf / a b c d",
		"echo $HOME $X \"$Y\"":              "echo $HOME $X $Y",
		"echo {a,b}{1..3}":                  "echo a1 a2 a3 b1 b2 b3",
		"echo {c..a} {1..9..4} {x}":         "echo c b a 1 5 9 {x}",
		"\"$HOME/go/bin/tool\" -x":          "tool -x",
		"\"$(go env GOPATH)/bin/tool\" -x":  "go env GOPATH|tool -x",
		"$X/tool":                           "?",
		"[ -f x ] && . x":                   "[ -f x ]|. x?",
		"a=ls b='-l /'; $a $b":              "ls -l /",
		"a=x; [ 1 ] && a=y; $a":             "[ 1 ]|y|x",
		"if t; then a=x; fi; $a":            "t|x?",
		"for i in a b; do $i c; done":       "a c|b c",
		"for i in *.sh; do sh \"$i\"; done": "sh $i?",
		"f() { g \"$2\"; }; f a b":          "f a b|g b",
		"f() { g; }":                        "g",
		"f() { f; }; f":                     "f",
		"$SUDO rm x":                        "?",
		"a \\\n  b":                         "a b",

		"env -i A=b nice -n 5 make all":           "env -i A=b nice -n 5 make all|nice -n 5 make all|make all",
		"sudo -u bob -- ls":                       "sudo -u bob -- ls|ls",
		"sudo -iu bob ls":                         "sudo -iu bob ls|ls",
		"sudo --user=bob ls":                      "sudo --user=bob ls|ls",
		"sudo --us bob ls":                        "sudo --us bob ls|ls",
		"sudo --new-option bob ls":                "sudo --new-option bob ls|bob ls?",
		"sudo -E env PATH=$PATH make x":           "sudo -E env PATH=$PATH make x|env PATH=$PATH make x|make x",
		"$SHELL -c ls":                            "?",
		"git config core.editor vim":              "git config core.editor vim|vim",
		"sudo -l":                                 "sudo -l",
		"sudo -i":                                 "sudo -i?",
		"doas -u root ls":                         "doas -u root ls|ls",
		"su - bob -c 'ls -l'":                     "su - bob -c ls -l|ls -l",
		"su -c ls bob":                            "su -c ls bob|ls",
		"su bob":                                  "su bob?",
		"runuser -u bob -- ls -c x":               "runuser -u bob -- ls -c x|ls -c x",
		"chroot /mnt ls":                          "chroot /mnt ls|ls",
		"timeout -k 5 10 ls":                      "timeout -k 5 10 ls|ls",
		"timeout $T ls":                           "timeout $T ls|ls?",
		"timeout \"$T\" ls":                       "timeout $T ls|ls",
		"command -v git":                          "command -v git",
		"flock /tmp/l -c 'ls; pwd'":               "flock /tmp/l -c ls; pwd|ls|pwd",
		"watch -n 1 'ls | wc'":                    "watch -n 1 ls | wc|ls|wc",
		"script -qec 'ls -l' /dev/null":           "script -qec ls -l /dev/null|ls -l",
		"strace -f -o out ls":                     "strace -f -o out ls|ls",
		"busybox rm x":                            "busybox rm x|rm x",
		"/lib64/ld-linux-x86-64.so.2 /bin/rm x":   "ld-linux-x86-64.so.2 /bin/rm x|rm x",
		"env":                                     "env",
		"npx -y eslint .":                         "npx -y eslint .|eslint .",
		"npm exec -- eslint .":                    "npm exec -- eslint .|eslint .",
		"npm run build":                           "npm run build",
		"uv run pytest -q":                        "uv run pytest -q|pytest -q",
		"uv run python -c 1":                      "uv run python -c 1|python -c 1?",
		"poetry run make":                         "poetry run make|make",
		"docker ps -a":                            "docker ps -a",
		"docker compose up -d":                    "docker compose up -d",
		"docker compose exec -T web ls":           "docker compose exec -T web ls|ls",
		"docker exec -it web sh -c 'ls; pwd'":     "docker exec -it web sh -c ls; pwd|sh -c ls; pwd|ls|pwd",
		"docker run --rm -v a:b alpine rm x":      "docker run --rm -v a:b alpine rm x|rm x",
		"docker run --entrypoint rm alpine x":     "docker run --entrypoint rm alpine x|rm|x",
		"docker -H tcp://x exec web rm x":         "docker -H tcp://x exec web rm x?",
		"kubectl exec -n x pod -- rm x":           "kubectl exec -n x pod -- rm x|rm x",
		"kubectl get pods":                        "kubectl get pods",
		"ssh -p 22 host 'cd x && ls'":             "ssh -p 22 host cd x && ls|cd x|ls",
		"ssh host":                                "ssh host",
		"ssh -o ProxyCommand='nc x 1' host ls":    "ssh -o ProxyCommand=nc x 1 host ls|nc x 1|ls",
		"ssh host <<E\nls\nE":                     "ssh host|ls",
		"tmux send-keys 'rm x' Enter":             "tmux send-keys rm x Enter?",
		"tmux ls":                                 "tmux ls",
		"parallel -j 4 gzip ::: a b":              "parallel -j 4 gzip ::: a b|gzip",
		"find . -name '*.o' -exec rm {} \\; -o x": "find . -name *.o -exec rm {} ; -o x|rm {}",
		"find . -exec {} \\;":                     "find . -exec {} ;?",
		"fd -e o -x rm":                           "fd -e o -x rm|rm",
		"xargs -0 -n 1 rm -f":                     "xargs -0 -n 1 rm -f|rm -f",
		"xargs":                                   "xargs",
		"xargs sudo":                              "xargs sudo|sudo?",
		"xargs -I{} mv {} x":                      "xargs -I{} mv {} x|mv {} x",
		"xargs -i mv {} x":                        "xargs -i mv {} x|mv {} x",
		"xargs bash":                              "xargs bash|bash?",
		"xargs python3":                           "xargs python3|python3?",

		"git -c core.pager=less log":          "git -c core.pager=less log|less",
		"git -c user.name=x commit":           "git -c user.name=x commit",
		"git -c alias.x='!rm y' x":            "git -c alias.x=!rm y x|rm y",
		"git -c alias.x='clean -f' x":         "git -c alias.x=clean -f x|git clean -f",
		"git config alias.x '!rm y'":          "git config alias.x !rm y|rm y",
		"git bisect run make test":            "git bisect run make test|make test",
		"git submodule foreach 'rm x'":        "git submodule foreach rm x|rm x",
		"git rebase -x 'make test' main":      "git rebase -x make test main|make test",
		"git clone 'ext::sh -c x'":            "git clone ext::sh -c x?",
		"GIT_EDITOR='rm x' git commit":        "rm x|git commit",
		"EDITOR=vim git commit":               "vim|git commit",
		"tar czf a.tgz b":                     "tar czf a.tgz b",
		"tar cf a b --to-command='rm x'":      "tar cf a b --to-command=rm x|rm x",
		"tar -I 'rm x' -cf a b":               "tar -I rm x -cf a b|rm x",
		"rsync -a -e 'ssh -p 2' a b:":         "rsync -a -e ssh -p 2 a b:|ssh -p 2",
		"go test -exec 'rm x' ./...":          "go test -exec rm x ./...|rm x",
		"vim -c ':!rm x' y":                   "vim -c :!rm x y?",
		"vim x":                               "vim x",
		"sqlite3 a.db '.shell rm x'":          "sqlite3 a.db .shell rm x?",
		"sqlite3 a.db 'select 1'":             "sqlite3 a.db select 1",
		"socat - EXEC:sh":                     "socat - EXEC:sh?",
		"at now <<< 'rm x'":                   "at now?",
		"at -l":                               "at -l",
		"crontab -l":                          "crontab -l",
		"crontab -":                           "crontab -?",
		"make -f - x":                         "make -f - x?",
		"make test":                           "make test",
		"python3 -m pytest":                   "python3 -m pytest",
		"python3 -m timeit x":                 "python3 -m timeit x?",
		"python3.12 x.py -c y":                "python3.12 x.py -c y",
		"python3 -Ic x":                       "python3 -Ic x?",
		"python3 -W ignore x.py":              "python3 -W ignore x.py",
		"python3":                             "python3?",
		"python3 - <<E\nx\nE":                 "python3 -?",
		"python3 --version":                   "python3 --version",
		"python3 \"$X\"":                      "python3 $X?",
		"python3 \"$HOME/x.py\"":              "python3 $HOME/x.py",
		"node -e x":                           "node -e x?",
		"node -pe x":                          "node -pe x?",
		"node --eval=x":                       "node --eval=x?",
		"node --test":                         "node --test",
		"node -r ./a b.js -e":                 "node -r ./a b.js -e?",
		"node -r dotenv/config b.js -e":       "node -r dotenv/config b.js -e",
		"perl -ne x":                          "perl -ne x?",
		"perl -MData::Dumper x.pl":            "perl -MData::Dumper x.pl",
		"ruby -rjson -e x":                    "ruby -rjson -e x?",
		"php -r x":                            "php -r x?",
		"php artisan migrate":                 "php artisan migrate",
		"bun test":                            "bun test",
		"bun -e x":                            "bun -e x?",
		"bun x rm y":                          "bun x rm y|rm y",
		"deno eval x":                         "deno eval x?",
		"deno run x.ts":                       "deno run x.ts",
		"pwsh -Command x":                     "pwsh -Command x?",
		"pwsh --version":                      "pwsh --version",
		"fish -c x":                           "fish -c x?",
		"awk '/a|b/ {print $1}' x":            "awk /a|b/ {print $1} x",
		"awk -F'|' '{print $1 / 2 \"|\"}' x":  "awk -F| {print $1 / 2 \"|\"} x",
		"awk '$1 || $2 {n++} END{print n}'":   "awk $1 || $2 {n++} END{print n}",
		"awk '{print | \"sh\"}'":              "awk {print | \"sh\"}?",
		"awk '{\"ls\" | getline x}'":          "awk {\"ls\" | getline x}?",
		"awk 'BEGIN{system(\"x\")}'":          "awk BEGIN{system(\"x\")}?",
		"awk -f x.awk y":                      "awk -f x.awk y",
		"sed -n '/e/p;s/a e b/x/g' f":         "sed -n /e/p;s/a e b/x/g f",
		"sed 's/[/]e/x/' f":                   "sed s/[/]e/x/ f",
		"sed ':a;N;$!ba;s/\\n/ /g' f":         "sed :a;N;$!ba;s/\\n/ /g f",
		"sed 's|x|y|e' f":                     "sed s|x|y|e f?",
		"sed -e p -e 'e ls' f":                "sed -e p -e e ls f?",
		"sed -n \"${a},${b}p\" f":             "sed -n ${a},${b}p f",
		"sed -i \"s/a/$(date | cut -c1)/\" f": "date|cut -c1|sed -i s/a/$(date | cut -c1)/ f",
		"sed \"s/a/$b/e\" f":                  "sed s/a/$b/e f?",
		"awk \"{print \\$1 $x}\" f":           "awk {print $1 $x} f",
		"awk \"{print \\$1 | $x}\" f":         "awk {print $1 | $x} f?",
		"sed -f x f":                          "sed -f x f",
		"bash x.sh a":                         "bash x.sh a",
		"bash $X":                             "bash $X?",
		"bash --version":                      "bash --version",
		"bash --rcfile x -c ls":               "bash --rcfile x -c ls|ls",
		"bash -O extglob -c ls":               "bash -O extglob -c ls|ls",
		"bash -c \"ls $HOME\"":                "bash -c ls $HOME|ls $HOME",
		"bash -c \"ls $X\"":                   "bash -c ls $X?",
		"bash -c 'ls \"$1\"' _ x":             "bash -c ls \"$1\" _ x|ls x",
		"bash":                                "bash?",
		"eval \"$(direnv hook bash)\"":        "direnv hook bash|eval $(direnv hook bash)?",
		"alias l='ls -l'; l x":                "alias l=ls -l|ls -l|l x|ls -l x",
		"fc -s":                               "fc -s?",
		"coproc x y":                          "x y",
		"jobs -x rm 1":                        "jobs -x rm 1|rm 1",
		"curl -o i.sh u && sh i.sh":           "curl -o i.sh u|sh i.sh?",
		"cat > b.sh <<'E'\nx\nE\nchmod +x b.sh && ./b.sh": "cat|chmod +x b.sh|b.sh?",
		"go build -o b . && ./b":                          "go build -o b .|b",
		"ls *(e:'rm x':)":                                 "ls *(e:'rm x':)?",
		"rm !(a|b)":                                       "rm !(a|b)",
		"rm\u00a0-rf":                                     "?",
		"ls\r\nrm x\r\n":                                  "ls|rm x",
		"a() b":                                           "b",
		"ls; )":                                           "ls?",
		"a\x00b":                                          "?",
	} {
		got := reader.Read(line)
		text := strings.Join(texts(got), "|")
		if got.Unresolved {
			text += "?"
		}
		assert.Equal(t, want, text, "%q: %q", line, got.Why)
		assert.Equal(t, got.Unresolved, len(got.Why) > 0, "%q", line)
	}
}

func TestWrites(t *testing.T) {
	var reader Reader
	for line, want := range map[string]string{
		"ls":                            "",
		"a > b >> c 2>d &> e >| f 1<>g": "b c d e f g",
		"a 2>&1 >&2 > /dev/null 2>/dev/stderr >&-": "",
		"a >& b":                          "b",
		"{ a; } > $HOME/b":                "$HOME/b",
		"a | tee -a b c":                  "b c",
		"dd if=a of=/dev/sda":             "/dev/sda",
		"cp -r a b c; mv d e":             "c e",
		"cp -t d a b; install -m 644 x y": "d y",
		"ln -s a b; rsync -a x/ y/":       "b y/",
		"sed -i 's/a/b/' f g; sed p h":    "f g",
		"sed -n 's/a/b/w out' f":          "out",
		"curl -sLo f u; wget -O g u":      "f g",
		"sort -o f f; truncate -s 0 g":    "f g",
		"touch a b":                       "a b",
		"sudo tee /etc/x < y":             "/etc/x",
		"bash -c 'a > b'":                 "b",
		"find . -fprint out":              "out",
		"cat <<E > f\nx > y\nE":           "f",
		"a > >(b)":                        "",
	} {
		assert.Equal(t, want, strings.Join(reader.Read(line).Writes, " "), "%q", line)
	}
}

func TestSyntaxError(t *testing.T) {
	var reader Reader
	got := reader.Read("ls\necho 'x")
	require.True(t, got.Unresolved)
	require.Equal(t, "2:6: reached EOF without closing quote `'`", got.Syntax)
	require.Equal(t, []string{"ls"}, texts(got))
}

func TestUnknownWords(t *testing.T) {
	var reader Reader
	for line, open := range map[string]bool{
		"rm a": false, "rm $X": true, "rm \"$X\"": true, "rm \"a$X\"": false, "rm $HOME": false, "rm $HOME/$X": true, "rm -r \"./$X\"": false,
		"rm *": true, "rm ./*": false, "rm \"*\"": false, "xargs rm": true, "rm $(a)": true, "a=b; rm $a": false,
	} {
		for _, c := range reader.Read(line).Commands {
			if c.Name == "rm" {
				require.Equal(t, open, c.Open, "%q", line)
				require.Equal(t, open, c.MayFlag("z"), "%q", line)
			}
		}
	}
}

func TestSource(t *testing.T) {
	var reader Reader
	got := reader.Read("A=1  git   commit -m 'a  b' >x; sudo ls")
	require.Equal(t, "git   commit -m 'a  b'", got.Commands[0].Source)
	require.Equal(t, "sudo ls", got.Commands[1].Source)
	require.Empty(t, got.Commands[2].Source)
	require.Equal(t, "/bin/ls", reader.Read("/bin/ls").Commands[0].Path)
}

// TestLimits shows that a line which costs too much is unresolved, whichever way
// it tries, and that what was found before stays.
func TestLimits(t *testing.T) {
	var reader Reader
	for name, line := range map[string]string{
		"long":       "echo " + strings.Repeat("x", maxLine),
		"brackets":   strings.Repeat("$(", maxOpening) + "x",
		"deep":       strings.Repeat("eval ", maxCode) + "rm x",
		"statements": strings.Repeat("a;", maxSteps+1),
		"commands":   strings.Repeat("a $RANDOM x", 1) + commandsList(maxCommands+1),
		"doubling":   "a=xxxxxxxxxxxxxxxx;" + strings.Repeat("a=$a$a;", 30) + "$a",
		"words":      "a=" + strings.Repeat("'x '", 1000) + "; echo $a",
		"braces":     "echo " + strings.Repeat("{a,b}", 20) + "; " + strings.Repeat("{a,b}", 20),
		"functions":  "f() { f a \"$@\"; f b \"$@\"; }; f",
		"loops":      strings.Repeat("for i in 1 2; do ", 12) + "eval a=\\$a$i; $b" + strings.Repeat("; done", 12),
		"variables":  manyVariables(maxVars+1) + "$x1",
		"aliases":    "alias a='" + strings.Repeat("b;", 3000) + "';" + strings.Repeat("a;", 500),
	} {
		assert.True(t, reader.Read("first; "+line).Unresolved, name)
		if name != "long" && name != "brackets" {
			assert.True(t, reader.Read("first; "+line).Runs("first"), name)
		}
	}
	require.False(t, reader.Read(strings.Repeat("true; ", 51)+"ls").Unresolved)
	require.True(t, reader.Read(strings.Repeat("true; ", 51)+"rm x").Runs("rm"))
}

func commandsList(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString("; c" + strings.Repeat("x", i%40) + strings.Repeat("y", i/40))
	}
	return b.String()
}

func manyVariables(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString("x" + strings.Repeat("1", i+1) + "=ls; ")
	}
	return b.String()
}

func TestConcurrent(t *testing.T) {
	var reader Reader
	t.Run("readers", func(t *testing.T) {
		for range 8 {
			t.Run("", func(t *testing.T) {
				t.Parallel()
				for range 50 {
					require.True(t, reader.Read("a=rm; for i in 1 2; do $a x; done").Runs("rm"))
					require.True(t, reader.Read("echo 'x").Unresolved)
				}
			})
		}
	})
}
