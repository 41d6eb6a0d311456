//go:build cgo

package main

// withC says whether the driver in C works in this build.
const withC = true
