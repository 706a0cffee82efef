if exists('b:current_syntax')
  finish
endif
runtime! syntax/markdown.vim
syntax match amanuThought /^▸.*/
syntax match amanuTool /^●.*/
syntax match amanuFolded /^│.*/
syntax match amanuShown /^┆.*/
syntax match amanuAdded /^[│┆] +.*/
syntax match amanuRemoved /^[│┆] -.*/
syntax match amanuError /^┆ error: .*/
highlight default link amanuThought Comment
highlight default link amanuTool Function
highlight default link amanuFolded Comment
highlight default link amanuShown Normal
highlight default link amanuAdded Added
highlight default link amanuRemoved Removed
highlight default link amanuError DiagnosticError
let b:current_syntax = 'amanu'
