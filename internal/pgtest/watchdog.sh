# Ends what runs in a folder, and removes it, once the other end of the standard input is closed:
# by the test binary, or by the kernel when the binary is gone.
#
#   sh -c "$script" watchdog folder
#
# The folder has a file NAME.pid for each process, with a signal and a number ("QUIT 4711"), and
# perhaps a file paused with the numbers of those that were stopped.
dir=$1
trap '' HUP INT QUIT TERM
cat >/dev/null

# A process that is stopped obeys no signal but KILL: first it is told, then woken.
for file in "$dir"/*.pid; do
	[ -f "$file" ] || continue
	read -r signal pid <"$file"
	kill -s "$signal" "$pid" 2>/dev/null
done
[ ! -f "$dir/paused" ] || kill -s CONT $(cat "$dir/paused") 2>/dev/null

for file in "$dir"/*.pid; do
	[ -f "$file" ] || continue
	read -r signal pid <"$file"
	tries=0
	while kill -s 0 "$pid" 2>/dev/null; do
		# A server that ends at once kills its children after five seconds.
		[ $tries -lt 140 ] || { kill -s KILL "$pid" && break; }
		tries=$((tries + 1))
		sleep 0.05
	done
done
# Children of a server that was killed may still write for a moment.
rm -rf "$dir" 2>/dev/null || { sleep 0.5 && rm -rf "$dir"; }
