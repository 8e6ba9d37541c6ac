! Calls ScaLAPACK, which calls BLACS, and compares with what is known of the answers: a system of
! equations, a product, norms, and the eigenvalues of a matrix whose spectrum has a formula.
!
! Link it with a ScaLAPACK behind the BLACS that is to be used. Process 0 prints a line
! "<routine> <error>" for each answer; the program ends with 1 if one of them is wrong.
program scalapack
    implicit none
    integer, parameter :: n = 200, block = 16, double = kind(1d0)
    integer :: context, me, processes, rows, columns, row, column, mine, yours, info, wrong
    integer :: a_desc(9), b_desc(9)
    integer, allocatable :: pivots(:)
    real(double), allocatable :: a(:, :), b(:, :), c(:, :)
    integer, external :: numroc, indxl2g

    call blacs_pinfo(me, processes)
    rows = int(sqrt(real(processes)))
    columns = processes / rows
    call blacs_get(-1, 0, context)
    call blacs_gridinit(context, 'R', rows, columns)
    call blacs_gridinfo(context, rows, columns, row, column)
    wrong = 0
    if (row >= 0) then
        mine = numroc(n, block, row, 0, rows)
        yours = numroc(n, block, column, 0, columns)
        allocate (a(max(mine, 1), max(yours, 1)), b(max(mine, 1), max(yours, 1)))
        allocate (c(max(mine, 1), max(yours, 1)), pivots(mine + block))
        call descinit(a_desc, n, n, block, block, 0, 0, context, max(mine, 1), info)
        call descinit(b_desc, n, 1, block, block, 0, 0, context, max(mine, 1), info)
        call equations()
        call products()
        call eigenvalues()
        call igsum2d(context, 'All', ' ', 1, 1, wrong, 1, -1, -1)
        call blacs_gridexit(context)
    end if
    call blacs_exit(0)
    if (wrong > 0) stop 1

contains

    ! Fills a distributed matrix by a formula.
    subroutine fill(matrix, formula)
        real(double), intent(out) :: matrix(:, :)
        interface
            real(kind(1d0)) function formula(i, j)
                integer, intent(in) :: i, j
            end function
        end interface
        integer :: i, j
        do j = 1, yours
            do i = 1, mine
                matrix(i, j) = formula(indxl2g(i, block, row, 0, rows), indxl2g(j, block, column, 0, columns))
            end do
        end do
    end subroutine

    ! Takes the largest error of all processes.
    subroutine check(routine, error, bound)
        character(*), intent(in) :: routine
        real(double), intent(inout) :: error
        real(double), intent(in) :: bound
        integer :: nobody(1)
        call dgamx2d(context, 'All', ' ', 1, 1, error, 1, nobody, nobody, -1, -1, -1)
        if (.not. error <= bound) wrong = wrong + 1
        if (me == 0) print '(a, es10.2)', routine, error
    end subroutine

    ! A x = b, where b is the sum of A's columns, so that x is 1 everywhere.
    subroutine equations()
        real(double) :: error
        integer :: i, j, at
        call fill(a, dominant)
        b = 0
        if (column == 0) then
            do i = 1, mine
                at = indxl2g(i, block, row, 0, rows)
                do j = 1, n
                    b(i, 1) = b(i, 1) + dominant(at, j)
                end do
            end do
        end if
        call pdgesv(n, 1, a, 1, 1, a_desc, pivots, b, 1, 1, b_desc, info)
        error = abs(info)
        if (column == 0) error = max(error, maxval(abs(b(1:mine, 1) - 1)))
        call check('pdgesv', error, 1d-12)
    end subroutine

    ! Elements of a product beside sums, and norms beside loops.
    subroutine products()
        real(double) :: error, expected, work(n)
        real(double), external :: pdlange
        integer :: i, j, k
        call fill(a, dominant)
        call fill(b, wave)
        call pdgemm('N', 'T', n, n, n, 2d0, a, 1, 1, a_desc, b, 1, 1, a_desc, 0d0, c, 1, 1, a_desc)
        error = 0
        do j = 1, yours
            do i = 1, mine
                expected = 0
                do k = 1, n
                    expected = expected + 2 * dominant(indxl2g(i, block, row, 0, rows), k) &
                        * wave(indxl2g(j, block, column, 0, columns), k)
                end do
                error = max(error, abs(c(i, j) - expected))
            end do
        end do
        call check('pdgemm', error, 1d-9)
        expected = 0
        do j = 1, n
            do i = 1, n
                expected = expected + dominant(i, j)**2
            end do
        end do
        error = abs(pdlange('F', n, n, a, 1, 1, a_desc, work) / sqrt(expected) - 1)
        call check('pdlange', error, 1d-12)
    end subroutine

    ! The eigenvalues of the second difference.
    subroutine eigenvalues()
        real(double) :: values(n), best(1), error
        real(double), allocatable :: work(:)
        integer :: k
        call fill(a, difference)
        call pdsyev('V', 'U', n, a, 1, 1, a_desc, values, c, 1, 1, a_desc, best, -1, info)
        allocate (work(int(best(1))))
        call pdsyev('V', 'U', n, a, 1, 1, a_desc, values, c, 1, 1, a_desc, work, size(work), info)
        error = abs(info)
        do k = 1, n
            error = max(error, abs(values(k) - 2 + 2 * cos(k * acos(-1d0) / (n + 1))))
        end do
        call check('pdsyev', error, 1d-12)
    end subroutine

    real(double) function dominant(i, j)
        integer, intent(in) :: i, j
        dominant = mod(7 * i + 13 * j, 31) / 31d0
        if (i == j) dominant = dominant + n
    end function

    real(double) function wave(i, j)
        integer, intent(in) :: i, j
        wave = sin(real(i, double)) + cos(real(3 * j, double))
    end function

    real(double) function difference(i, j)
        integer, intent(in) :: i, j
        difference = 0
        if (i == j) difference = 2
        if (abs(i - j) == 1) difference = -1
    end function
end program
