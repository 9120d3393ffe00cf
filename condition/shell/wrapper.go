package shell

import "strings"

// wrapper is a program that runs another, whose name and arguments are its own
// arguments.
type wrapper struct {
	// sub are words of which one stands first, as in "npm exec". Without one of
	// them the program runs nothing that it is given.
	sub string
	// opts are its options. One that is not among them makes a line unresolved,
	// as its value could be taken for the command.
	opts options
	// operands is how many arguments stand before the command.
	operands int
	// assigns says that NAME=VALUE may stand there, too.
	assigns bool
	// code are options whose value is a line of its own.
	code string
	// none are options with which nothing is run.
	none string
	// joins says that the words are joined and read by a shell.
	joins bool
	// lines says that each argument is a line of its own.
	lines bool
	// shell says that without a command it runs a shell.
	shell bool
}

// wrapperOf returns the wrapper of a name in lower case, or nil.
func wrapperOf(name string) *wrapper {
	switch name {
	case "env", "genv":
		return &wrapper{assigns: true, none: "help version", opts: "iv0u:C:S:P:a: --ignore-environment --null --unset= --chdir= --split-string= --argv0= --block-signal --default-signal --ignore-signal --list-signal-handling --debug --help --version"}
	case "command":
		return &wrapper{opts: "pvV", none: "v V"}
	case "builtin", "noglob", "nocorrect", "-":
		return &wrapper{opts: ""}
	case "exec":
		return &wrapper{opts: "cla:"}
	case "nohup", "gnohup":
		return &wrapper{opts: " --help --version"}
	case "setsid":
		return &wrapper{opts: "cfwhV --ctty --fork --wait"}
	case "nice", "gnice":
		return &wrapper{opts: "n:0123456789 --adjustment="}
	case "ionice":
		return &wrapper{opts: "c:n:tp:P:u: --class= --classdata= --ignore --pid= --pgid= --uid=", none: "p P u pid pgid uid"}
	case "chrt":
		return &wrapper{opts: "abdfimopRrvT:P:D:", none: "p", operands: 1}
	case "taskset":
		return &wrapper{opts: "acp --all-tasks --cpu-list --pid", none: "p pid", operands: 1}
	case "stdbuf", "gstdbuf":
		return &wrapper{opts: "i:o:e: --input= --output= --error="}
	case "timeout", "gtimeout":
		return &wrapper{opts: "fk:ps:v --foreground --kill-after= --preserve-status --signal= --verbose", operands: 1}
	case "time", "gtime":
		return &wrapper{opts: "ahlpqvVf:o: --append --format= --output= --portability --quiet --verbose"}
	case "sudo":
		return &wrapper{assigns: true, shell: true, none: "e K l v V edit list validate version remove-timestamp help", opts: "ABbEeHiKklNnPSsVvC:D:g:h:p:R:r:T:t:U:u: --askpass --background --bell --close-from= --chdir= --preserve-env --edit --group= --set-home --help --host= --login --remove-timestamp --reset-timestamp --list --no-update --non-interactive --preserve-groups --prompt= --chroot= --role= --stdin --shell --type= --command-timeout= --other-user= --user= --version --validate"}
	case "doas":
		return &wrapper{opts: "Lnsu:C:a:", shell: true, none: "L C"}
	case "pkexec":
		return &wrapper{opts: " --user= --disable-internal-agent --keep-cwd --help --version"}
	case "chroot":
		return &wrapper{opts: " --userspec= --groups= --skip-chdir", operands: 1, shell: true}
	case "unshare":
		return &wrapper{opts: "mUiunpCTfrcS:G:R:w: --mount --uts --ipc --net --pid --user --cgroup --time --fork --map-root-user --map-current-user --mount-proc --kill-child --root= --wd= --setuid= --setgid=", shell: true}
	case "nsenter":
		return &wrapper{opts: "amUiunpCTFrwt:S:G: --all --target= --mount --uts --ipc --net --pid --user --cgroup --setuid= --setgid= --root --wd --no-fork", shell: true}
	case "strace", "ltrace":
		return &wrapper{opts: "cCdfFhikqrtTvwxXyYza:b:e:E:I:l:n:o:O:p:P:s:S:u:U: --follow-forks --output= --trace= --summary-only", none: "p"}
	case "valgrind":
		return &wrapper{opts: "vq --tool= --leak-check --error-exitcode"}
	case "flock":
		return &wrapper{opts: "sxeunoFw:E:c: --shared --exclusive --unlock --nonblock --wait= --timeout= --close --no-fork --conflict-exit-code= --command=", operands: 1, code: "c command"}
	case "watch":
		return &wrapper{opts: "bcdeghpq:n:tvwx --beep --color --differences --errexit --chgexit --equexit= --interval= --precise --no-title --no-wrap --exec", joins: true}
	case "script":
		return &wrapper{opts: "aefqtB:c:E:I:m:o:O:T: --append --command= --return --flush --force --quiet --log-out= --log-io= --timing", code: "c command", operands: 1, shell: true}
	case "caffeinate":
		return &wrapper{opts: "dimsut:w:"}
	case "busybox", "toybox":
		return &wrapper{opts: " --list --list-full --help --install", none: "list list-full help install"}
	case "hyperfine":
		return &wrapper{opts: "NiSw:m:M:r:s:p:c:n:L:P: --warmup= --runs= --min-runs= --max-runs= --prepare= --setup= --cleanup= --ignore-failure --shell= --export-json= --export-markdown= --show-output --command-name=", code: "p s c prepare setup cleanup", lines: true}
	case "concurrently":
		return &wrapper{opts: "krn:c:p:s: --kill-others --kill-others-on-fail --names= --prefix= --prefix-colors= --raw --success= --restart-tries=", lines: true}
	case "npx", "pnpx", "bunx":
		return &wrapper{opts: "yqp:c: --yes --no --no-install --package= --call= --quiet --bun", code: "c call"}
	case "uvx":
		return &wrapper{opts: "qp: --from= --with= --python= --quiet --isolated --refresh"}
	case "npm":
		return &wrapper{sub: "exec x", opts: "yc: --yes --no --package= --call= --workspace=", code: "c call"}
	case "pnpm", "yarn":
		return &wrapper{sub: "exec dlx", opts: "rsc --recursive --package= --parallel"}
	case "bun":
		return &wrapper{sub: "x"}
	case "bundle":
		return &wrapper{sub: "exec"}
	case "poetry", "pipenv", "pdm", "hatch", "rye":
		return &wrapper{sub: "run", opts: "qv"}
	case "uv":
		return &wrapper{sub: "run", opts: "qvp:m: --with= --python= --extra= --group= --all-extras --no-sync --frozen --locked --isolated --dev --no-dev --no-project --directory= --project= --package= --module= --script --env-file= --active --quiet", none: "m module"}
	case "conda", "mamba", "micromamba":
		return &wrapper{sub: "run", opts: "vn:p: --name= --prefix= --no-capture-output --live-stream --cwd="}
	case "mise", "rtx":
		return &wrapper{sub: "exec x", opts: "c: --command=", code: "c command"}
	case "asdf", "direnv", "rustup", "pyenv", "rbenv":
		return &wrapper{sub: "exec run", opts: " --install", operands: 1}
	case "nix-shell":
		return &wrapper{opts: "p:A: --run= --command= --pure --packages=", code: "run command", shell: true}
	case "dotenvx":
		return &wrapper{sub: "run", opts: "f:e:q --env-file= --env= --quiet"}
	case "cross-env", "cross-env-shell":
		return &wrapper{assigns: true}
	case "perf":
		return &wrapper{sub: "stat record trace", opts: "aBbde:F:G:gi:I:j:m:o:p:qr:sS:t:Tu:vx:C:D: --event= --all-cpus --repeat= --output= --freq= --call-graph= --detailed --verbose --quiet --pid= --tid= --append --delay= --interval-print= --no-big-num --null --json --per-core --per-thread"}
	case "ssh-agent":
		return &wrapper{opts: "cDdkst:a:E:O:P:", none: "k"}
	case "systemd-cat":
		return &wrapper{opts: "t:p:h --identifier= --priority= --stderr-priority= --level-prefix= --namespace= --help --version"}
	case "run0":
		return &wrapper{shell: true, opts: "u:g:D:hV --user= --group= --unit= --property= --description= --slice= --slice-inherit --nice= --chdir= --setenv= --background= --machine= --pty --pipe --shell-prompt-prefix= --no-ask-password --help --version", none: "h V help version"}
	case "lerna":
		return &wrapper{sub: "exec", opts: " --scope= --ignore= --concurrency= --since= --loglevel= --stream --parallel --no-bail --no-prefix --no-private --include-dependencies"}
	case "opam":
		return &wrapper{sub: "exec", opts: " --switch= --root= --set-root --set-switch"}
	case "repeat": // of zsh
		return &wrapper{operands: 1}
	case "srun", "salloc":
		return &wrapper{opts: "n:N:c:p:t:w:x:J:A:o:e:i:G:q:D:C:lvQKkuX --ntasks= --nodes= --cpus-per-task= --partition= --time= --nodelist= --exclude= --job-name= --account= --output= --error= --input= --gres= --gpus= --mem= --mem-per-cpu= --qos= --chdir= --constraint= --ntasks-per-node= --cpu-bind= --mpi= --label --exclusive --unbuffered --overlap --verbose --quiet --pty --help --version", none: "help version", shell: true}
	case "docker", "podman", "nerdctl":
		return &wrapper{sub: "exec run create", operands: 1, code: "entrypoint health-cmd", opts: "itdTPe:v:p:w:u:h:m:l:c:a: --interactive --tty --detach --rm --init --privileged --read-only --env= --env-file= --volume= --mount= --publish= --name= --network= --net= --workdir= --user= --hostname= --memory= --cpus= --gpus= --platform= --pull= --entrypoint= --label= --add-host= --link= --restart= --shm-size= --cap-add= --cap-drop= --security-opt= --device= --dns= --ipc= --pid= --tmpfs= --ulimit= --detach-keys= --publish-all --health-cmd="}
	case "docker-compose", "podman-compose":
		return &wrapper{sub: "exec run", opts: "dTite:u:w:v:p: --rm --no-deps --detach --env= --user= --workdir= --volume= --publish= --name= --entrypoint= --service-ports --build --quiet-pull --no-TTY --index=", operands: 1, code: "entrypoint"}
	case "vagrant":
		return &wrapper{sub: "ssh", opts: "c: --command=", code: "c command", operands: 1}
	case "lxc", "incus":
		return &wrapper{sub: "exec", opts: "tTn --mode= --env= --cwd= --user= --group=", operands: 1}
	case "systemd-run":
		return &wrapper{opts: "dGMPqrStp:E:u:H: --user --scope --pty --pipe --wait --collect --quiet --unit= --property= --setenv= --slice= --working-directory= --uid= --gid= --same-dir --shell --on-active= --on-calendar=", shell: true}
	case "tini", "dumb-init", "catatonit":
		return &wrapper{opts: "csgvp:e:r:"}
	case "gosu", "su-exec", "setuidgid", "chpst", "envdir":
		return &wrapper{operands: 1}
	case "xvfb-run":
		return &wrapper{opts: "ae:f:n:s:p: --auto-servernum --server-args= --server-num="}
	case "cpulimit":
		return &wrapper{opts: "l:z --limit="}
	case "faketime":
		return &wrapper{opts: "fmp: --exclude-monotonic --pid= --help --version", operands: 1, shell: true}
	case "proot":
		return &wrapper{opts: "r:b:m:w:q:k:i:v:p:0R:S:hVl --rootfs= --bind= --mount= --cwd= --pwd= --qemu= --kernel-release= --root-id --change-id= --kill-on-exit --link2symlink --verbose= --help --version", shell: true, none: "h V help version"}
	case "flatpak-spawn":
		return &wrapper{opts: "v --host --verbose --clear-env --watch-bus --env= --unset-env= --env-fd= --forward-fd= --directory= --sandbox --no-network --latest-version --sandbox-expose= --sandbox-expose-ro= --share-pids --expose-pids"}
	case "sshpass":
		return &wrapper{opts: "p:f:d:e::P:vhV"}
	case "mosh":
		return &wrapper{opts: "46anp:P: --client= --server= --ssh= --predict= --port= --no-init --local --no-ssh-pty --family= --bind-server=", operands: 1}
	case "watchexec":
		return &wrapper{opts: "e:w:W:f:i:s:d:n::rcpqN1hV --exts= --watch= --filter= --ignore= --restart --clear --debounce= --signal= --stop-signal= --postpone --shell= --no-vcs-ignore --no-ignore --on-busy-update= --project-origin= --workdir= --notify --print-events --delay-run= --poll --help --version", joins: true}
	case "reflex":
		return &wrapper{opts: "r:R:g:G:s:d:av --regex= --inverse-regex= --glob= --inverse-glob= --start-service --decoration= --all --verbose --sequential --only-files --only-dirs"}
	case "entr":
		return &wrapper{opts: "acdnprsz", joins: true}
	case "systemd-inhibit", "firejail", "bwrap", "proxychains", "proxychains4", "torsocks", "torify", "tsocks", "dbus-run-session", "dbus-launch", "cgexec", "numactl", "prlimit", "choom", "setarch", "linux32", "linux64", "i386", "x86_64", "arch", "setpriv", "rlwrap", "unbuffer", "fakeroot", "fakechroot", "ccache", "sccache", "distcc", "bear", "icecc", "eatmydata", "catchsegv", "chronic", "daemonize", "start-stop-daemon", "winpty", "softlimit", "trickle", "retry", "ifne", "vipe", "errno-run", "setlock", "pgrphack", "nocache", "ld.so":
		return &wrapper{}
	}
	return nil
}

func hasWord(list, word string) bool {
	for w := range strings.FieldsSeq(list) {
		if w == word {
			return true
		}
	}
	return false
}

// wrapper follows a program of the table.
func (r *reader) wrapper(name string, c call) {
	if strings.HasPrefix(name, "ld-linux") || strings.HasPrefix(name, "ld-musl") {
		name = "ld.so"
	}
	if w := wrapperOf(name); w != nil {
		if c.args = c.args[1:]; w.sub == "" || r.subcommand(w, &c) {
			r.unwrap(w, c)
		}
	}
}

// subcommand skips the words up to the one behind which the command stands.
func (r *reader) subcommand(w *wrapper, c *call) bool {
	args := c.args
	if len(args) > 0 && (args[0].text == "compose" || args[0].text == "container") { // docker compose exec
		args = args[1:]
	}
	if len(args) == 0 {
		return false
	}
	if !strings.HasPrefix(args[0].text, "-") && !args[0].unknown {
		c.args = args[1:]
		return hasWord(w.sub, args[0].text)
	}
	for i := range args { // behind options that are not known here
		if args[i].splits || hasWord(w.sub, args[i].text) {
			r.unresolvedWord("what is run is not known", joinText(args))
			return false
		}
	}
	return false
}

// unwrap follows what a wrapper runs.
func (r *reader) unwrap(w *wrapper, c call) {
	got, rest, odd := w.opts.read(c.args)
	if odd != "" {
		r.unresolvedWord("what stands behind an option is not known", odd)
	}
	if words, ok := find(got, "S split-string"); ok && w.assigns {
		r.splitString(words, rest, c)
		return
	}
	coded := r.codes(w, got, c)
	if _, ok := find(got, w.none); ok {
		return
	}
	for n := w.operands; n > 0 && len(rest) > 0; n-- {
		if rest[0].splits {
			r.unresolvedWord("a command word is not known", rest[0].text)
		}
		rest = rest[1:]
		if w.operands > 0 { // options may stand behind operands, too
			var more []option
			if more, rest, odd = w.opts.read(rest); odd != "" {
				r.unresolvedWord("what stands behind an option is not known", odd)
			}
			coded = r.codes(w, more, c) || coded
		}
	}
	for w.assigns && len(rest) > 0 {
		if rest[0].text == "-" { // env: without the variables that there are
			if _, rest, odd = w.opts.read(rest[1:]); odd != "" {
				r.unresolvedWord("what stands behind an option is not known", odd)
			}
			continue
		}
		name, text, ok := strings.Cut(rest[0].text, "=")
		if !ok || rest[0].unknown && rest[0].tail <= len(name) {
			break
		}
		r.assigned(name, field{text: text, unknown: rest[0].unknown, unsafe: rest[0].unsafe})
		rest = rest[1:]
	}
	switch {
	case len(rest) > 0 || c.more:
		r.inner(w, rest, c)
	case w.shell && !coded:
		r.fromInput(c.in, nil)
	}
}

// codes follows options that hold a line.
func (r *reader) codes(w *wrapper, got []option, c call) (any bool) {
	for _, opt := range got {
		if hasWord(w.code, opt.name) {
			any = true
			r.childCode(opt.value, c.in, nil)
		}
	}
	return any
}

// inner runs what a wrapper was given to run.
func (r *reader) inner(w *wrapper, rest []field, c call) {
	switch {
	case len(rest) > 0 && (isAddress(rest[0].text) || rest[0].text == "-" && w.sub == "run"):
		r.unresolvedWord("what is run comes from elsewhere", joinText(rest))
	case w.lines:
		for _, f := range rest {
			r.childCode(f, c.in, nil)
		}
	case w.joins:
		r.joinedCode(rest, c)
	default:
		r.run(call{args: rest, more: c.more, in: c.in})
	}
}

// joinedCode follows words that a program joins and gives to a shell.
func (r *reader) joinedCode(words []field, c call) {
	text, ok := codeText(words)
	if !ok || c.more || strings.Contains(text, "{}") {
		r.unresolvedWord("what a shell is given is not known", joinText(words))
		return
	}
	r.inChild(text, c.in, nil, "")
}

// splitString follows env -S, whose value is split into words.
func (r *reader) splitString(words field, rest []field, c call) {
	tail, ok := requote(rest)
	if words.unsafe || words.glob || !ok || c.more {
		r.unresolvedWord("what a shell is given is not known", words.text)
		return
	}
	// The words are quoted as a shell would have them, and may be options of env.
	r.inChild("env "+words.text+tail, c.in, nil, "")
}

// childCode follows a word that another shell reads as code.
func (r *reader) childCode(f field, in stdin, args []field) {
	if f.unsafe || f.glob || f.proc {
		r.unresolvedWord("what a shell is given is not known", f.text)
		return
	}
	name := "sh"
	if len(args) > 0 {
		name, args = args[0].text, args[1:]
	}
	r.inChild(f.text, in, args, name)
}

// fromInput follows a shell that reads what it runs.
func (r *reader) fromInput(in stdin, args []field) {
	if !in.known {
		r.unresolved("a shell reads what it runs from its input")
		return
	}
	r.inChild(in.text, stdin{given: true}, args, "sh")
}
